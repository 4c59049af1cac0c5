//! An HTTP/1.1 client that shows everything and decides nothing: no redirects, no retries, headers in their order.
//!
//! Hand-written, because the tests send what no library sends (repeated headers, half a request, bytes that are not
//! HTTP), and because a silent retry of a POST would hide exactly what the crash test looks for.

use serde_json::Value;
use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer that takes longer is a lost answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// One request before it is encoded.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// One user of one keep-alive connection; connects when necessary.
pub struct Client {
    address: SocketAddr,
    headers: Vec<(String, String)>,
    connection: Option<BufReader<TcpStream>>,
}

impl Request {
    pub fn new(method: &str, path: &str) -> Request {
        Request { method: method.to_string(), path: path.to_string(), ..Request::default() }
    }

    pub fn get(path: &str) -> Request {
        Request::new("GET", path)
    }

    pub fn post(path: &str) -> Request {
        Request::new("POST", path)
    }

    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_string(), value.to_string()));
        self
    }

    pub fn json(self, body: &Value) -> Request {
        self.text("application/json", &body.to_string())
    }

    pub fn text(mut self, kind: &str, body: &str) -> Request {
        self.body = Some(body.as_bytes().to_vec());
        self.header("Content-Type", kind)
    }

    /// The head and the body as they are sent.
    pub fn bytes(&self, address: SocketAddr, more: &[(String, String)]) -> Vec<u8> {
        let mut out = format!("{} {} HTTP/1.1\r\nHost: {address}\r\n", self.method, self.path);
        for (name, value) in more.iter().chain(&self.headers) {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            out.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        out.push_str("\r\n");
        let mut out = out.into_bytes();
        out.extend_from_slice(self.body.as_deref().unwrap_or_default());
        out
    }
}

impl Response {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Number of headers of that name.
    pub fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).count()
    }

    /// A stream of events, of which only the first chunk was read.
    fn is_endless(&self) -> bool {
        self.status == 200 && self.header("Content-Type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("answers are UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {} {:?}", self.status, self.lossy()))
    }

    /// The error code in the body, in either dialect; empty if there is none.
    pub fn code(&self) -> String {
        let body: Option<Value> = serde_json::from_slice(&self.body).ok();
        let code = |body: Value| body.get("code").or_else(|| body.get("error"))?.as_str().map(str::to_string);
        body.and_then(code).unwrap_or_default()
    }

    pub fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON of an answer with that status; panics with the whole answer otherwise.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "expected {status}, got {} {}", self.status, self.lossy());
        self.json()
    }

    /// An error answer with that status and code, in the full form of gateway/docs/wire.md §5.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(
            (self.status, self.code().as_str()),
            (status, code),
            "expected {status} {code}, got {} {}",
            self.status,
            self.lossy()
        );
        self.assert_envelope();
        self.json()
    }

    /// The parts of every error: two texts, the code header, a request id. In the strict dialect both texts are the
    /// sentence, and the code is beside them.
    #[track_caller]
    pub fn assert_envelope(&self) {
        let body = self.json();
        let code = body.get("code").or_else(|| body.get("error")).and_then(Value::as_str);
        let code = code.unwrap_or_else(|| panic!("no error code in {body}"));
        if body.get("code").is_some() {
            assert_eq!(body.get("error"), body.get("message"), "a strict error repeats its sentence");
        }
        let message = body.get("message").and_then(Value::as_str).unwrap_or_else(|| panic!("no message in {body}"));
        assert!(!code.is_empty() && !message.is_empty(), "an empty code or message in {body}");
        let expected = match code {
            "INVALID_POST_ONLY_ORDER" => "POST_ONLY_WOULD_CROSS",
            "INVALID_ORDER_MIN_SIZE" => "ORDER_BELOW_MIN_SIZE",
            same => same,
        };
        assert_eq!(self.header("X-Svc-Code"), Some(expected), "code header of {body}");
        assert_eq!(self.count("X-Svc-Code"), 1, "code header is sent once");
        self.assert_request_id();
    }

    #[track_caller]
    pub fn assert_request_id(&self) {
        assert_eq!(self.count("X-Request-Id"), 1, "one request id on {} {}", self.status, self.lossy());
        assert!(!self.header("X-Request-Id").unwrap_or_default().is_empty(), "the request id is not empty");
    }
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        Client { address, headers: Vec::new(), connection: None }
    }

    pub fn with_key(address: SocketAddr, key: &str) -> Client {
        Client::new(address).with_header("X-API-Key", key)
    }

    pub fn with_token(address: SocketAddr, token: &str) -> Client {
        Client::new(address).with_header("Authorization", &format!("Bearer {token}"))
    }

    /// A header of every request.
    pub fn with_header(mut self, name: &str, value: &str) -> Client {
        self.headers.push((name.to_string(), value.to_string()));
        self
    }

    /// The address of a restarted server.
    pub fn moved_to(&mut self, address: SocketAddr) {
        self.address = address;
        self.connection = None;
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends once; an error means that no complete answer came, and nothing about what the server did.
    pub fn call(&mut self, request: &Request) -> io::Result<Response> {
        let bytes = request.bytes(self.address, &self.headers);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => BufReader::new(connect(self.address)?),
        };
        connection.get_mut().write_all(&bytes)?;
        let response = read_response(&mut connection, request.method == "HEAD")?;
        let closes = response.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if !closes && !response.is_endless() {
            self.connection = Some(connection);
        }
        crate::description::check(request, &response);
        Ok(response)
    }

    /// Sends and requires an answer.
    #[track_caller]
    pub fn send(&mut self, request: &Request) -> Response {
        self.call(request).unwrap_or_else(|error| panic!("{} {}: {error}", request.method, request.path))
    }

    #[track_caller]
    pub fn get(&mut self, path: &str) -> Response {
        self.send(&Request::get(path))
    }

    #[track_caller]
    pub fn post(&mut self, path: &str, body: &Value) -> Response {
        self.send(&Request::post(path).json(body))
    }

    #[track_caller]
    pub fn delete(&mut self, path: &str) -> Response {
        self.send(&Request::new("DELETE", path))
    }

    #[track_caller]
    pub fn patch(&mut self, path: &str, body: &Value) -> Response {
        self.send(&Request::new("PATCH", path).json(body))
    }

    #[track_caller]
    pub fn put(&mut self, path: &str, body: &Value) -> Response {
        self.send(&Request::new("PUT", path).json(body))
    }
}

/// The result of a raw exchange on a connection of its own.
#[derive(Debug)]
pub struct RawAnswer {
    /// The first answer, if the bytes are one.
    pub response: Option<Response>,
    /// What follows on the connection.
    rest: RefCell<BufReader<TcpStream>>,
}

impl RawAnswer {
    /// Whether the server closes the connection after the answer, without another byte. Waits for it.
    pub fn ends(&self) -> bool {
        match self.rest.borrow_mut().read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }

    /// Whether the connection is still open a moment after the answer.
    pub fn stays_open(&self) -> bool {
        let set = self.rest.borrow().get_ref().set_read_timeout(Some(Duration::from_millis(300)));
        set.is_ok() && !self.ends()
    }
}

/// Sends the bytes unchanged and reads one answer.
pub fn send_raw(address: SocketAddr, bytes: &[u8]) -> RawAnswer {
    let mut stream = connect(address).expect("the server accepts connections");
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(bytes);
    read_raw(stream)
}

/// Sends the bytes unchanged and reads one answer; the state of the connection afterwards is ignored.
pub fn ask_raw(address: SocketAddr, bytes: &[u8]) -> Option<Response> {
    let mut stream = connect(address).expect("the server accepts connections");
    let _ = stream.write_all(bytes);
    read_response(&mut BufReader::new(stream), false).ok()
}

/// Reads one answer.
pub fn read_raw(stream: TcpStream) -> RawAnswer {
    let mut reader = BufReader::new(stream);
    let response = read_response(&mut reader, false).ok();
    RawAnswer { response, rest: RefCell::new(reader) }
}

/// A connection with a read timeout.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    Ok(stream)
}

fn read_response(reader: &mut impl BufRead, head_only: bool) -> io::Result<Response> {
    loop {
        let response = read_one(reader, head_only)?;
        // 1xx answers precede another one.
        if response.status >= 200 {
            return Ok(response);
        }
    }
}

fn read_one(reader: &mut impl BufRead, head_only: bool) -> io::Result<Response> {
    let line = read_line(reader)?;
    let status = line
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| line.strip_prefix("HTTP/1.0 "))
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .ok_or_else(|| bad(&format!("not a status line: {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad(&format!("not a header: {line:?}")))?;
        headers.push((name.to_string(), value.trim().to_string()));
    }
    let mut response = Response { status, headers, body: Vec::new() };
    if head_only || status == 204 || status == 304 || status < 200 {
        return Ok(response);
    }
    if response.header("Transfer-Encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        loop {
            let size = read_line(reader)?;
            let size = usize::from_str_radix(&size, 16).map_err(|_| bad(&format!("not a chunk size: {size:?}")))?;
            let start = response.body.len();
            response.body.resize(start + size, 0);
            reader.read_exact(&mut response.body[start..])?;
            read_line(reader)?;
            // A stream of events has no end: its first chunk is enough.
            if size == 0 || response.is_endless() {
                return Ok(response);
            }
        }
    }
    if let Some(length) = response.header("Content-Length") {
        let length: usize = length.parse().map_err(|_| bad("Content-Length is not a number"))?;
        response.body.resize(length, 0);
        reader.read_exact(&mut response.body)?;
    } else {
        reader.read_to_end(&mut response.body)?;
    }
    Ok(response)
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended in mid-answer"));
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| bad("a head that is not UTF-8"))
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::read_response;

    #[test]
    fn bodies_are_read_by_length_by_chunks_and_to_the_end() {
        let rows: [(&str, u16, &str); 5] = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n", 200, "hi"),
            ("HTTP/1.1 200 OK\r\n\r\nhi", 200, "hi"),
            ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, ""),
        ];
        for (bytes, status, body) in rows {
            let response = read_response(&mut bytes.as_bytes(), false).expect(bytes);
            assert_eq!((response.status, response.text()), (status, body), "{bytes}");
        }
        assert!(read_response(&mut "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi".as_bytes(), false).is_err());
        println!("answers: {} cases", rows.len() + 1);
    }
}
