//! The stand-in's sockets: books, and spot prices.

use super::{Mood, Say, Shared, Subscriber};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use std::future::pending;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

pub async fn books(listener: TcpListener, shared: Shared) {
    while let Ok((stream, _)) = listener.accept().await {
        if !shared.lock().expect("sound").gone {
            tokio::spawn(book(stream, shared.clone()));
        }
    }
}

async fn book(stream: TcpStream, shared: Shared) {
    let Ok(mut socket) = accept_async(stream).await else { return };
    let (out, mut says) = mpsc::unbounded_channel();
    let number = {
        let mut state = shared.lock().expect("sound");
        state.sockets_count += 1;
        let number = state.sockets_count;
        state.sockets.insert(number, Subscriber { tokens: Vec::new(), out });
        number
    };
    loop {
        if shared.lock().expect("sound").mood == Mood::HalfOpen {
            // Until the other side gives up, which this side cannot see.
            pending::<()>().await;
        }
        let heard = tokio::select! {
            say = says.recv() => match say {
                Some(Say::Text(text)) => {
                    if socket.send(Message::text(text)).await.is_err() {
                        break;
                    }
                    continue;
                }
                Some(Say::Close) | None => {
                    let _ = socket.close(None).await;
                    break;
                }
            },
            heard = socket.next() => heard,
        };
        let Some(Ok(message)) = heard else { break };
        let Message::Text(text) = message else { continue };
        let answer = if text.as_str() == "PING" { Some("PONG".to_owned()) } else { subscribe(&shared, number, &text) };
        if let Some(answer) = answer
            && socket.send(Message::text(answer)).await.is_err()
        {
            break;
        }
    }
    shared.lock().expect("sound").sockets.remove(&number);
}

/// Adds a subscription; returns its first dump.
fn subscribe(shared: &Shared, number: u64, text: &str) -> Option<String> {
    let mut state = shared.lock().expect("sound");
    let frame: Value = serde_json::from_str(text).ok()?;
    let tokens: Vec<String> =
        frame["assets_ids"].as_array()?.iter().filter_map(|token| token.as_str().map(String::from)).collect();
    if frame["operation"] == "unsubscribe" {
        state.sockets.get_mut(&number)?.tokens.retain(|token| !tokens.contains(token));
        state.given_up.extend(tokens);
        return None;
    }
    let known = &mut state.sockets.get_mut(&number)?.tokens;
    known.extend(tokens.iter().cloned());
    assert!(known.len() <= 500, "more tokens on a socket than the venue accepts: {}", known.len());
    if state.mood != Mood::Well {
        return None;
    }
    let dumped: Vec<Value> =
        if state.dumps { tokens.iter().filter_map(|token| state.book_message(token)).collect() } else { Vec::new() };
    Some(Value::from(dumped).to_string())
}

pub async fn spots(listener: TcpListener, shared: Shared) {
    while let Ok((stream, _)) = listener.accept().await {
        if !shared.lock().expect("sound").gone {
            tokio::spawn(spot(stream, shared.clone()));
        }
    }
}

async fn spot(stream: TcpStream, shared: Shared) {
    let Ok(mut socket) = accept_async(stream).await else { return };
    let (out, mut says) = mpsc::unbounded_channel();
    let mut out = Some(out);
    loop {
        let heard = tokio::select! {
            say = says.recv() => match say {
                Some(Say::Text(text)) => {
                    if socket.send(Message::text(text)).await.is_err() {
                        return;
                    }
                    continue;
                }
                Some(Say::Close) | None => {
                    let _ = socket.close(None).await;
                    return;
                }
            },
            heard = socket.next() => heard,
        };
        let Some(Ok(message)) = heard else { return };
        let Message::Text(text) = message else { continue };
        if text.as_str() == "PING" {
            if socket.send(Message::text("PONG")).await.is_err() {
                return;
            }
        } else if let Some(out) = out.take() {
            let frame: Value = serde_json::from_str(&text).expect("a subscription is JSON");
            assert_eq!(frame["action"], "subscribe", "{frame}");
            assert_eq!(frame["subscriptions"].as_array().map(Vec::len), Some(5), "{frame}");
            let mut state = shared.lock().expect("sound");
            state.sockets_count += 1;
            let number = state.sockets_count;
            state.spots.insert(number, out);
        }
    }
}
