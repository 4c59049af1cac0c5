//! The listeners of a server, and how long it serves.

use crate::boot_error::{BootError, io};
use crate::layout::{self, Asked};
use crate::runtime::Runtime;
use edge::api::health::measure_when_asked;
use edge::app::Edge;
use edge::http::server;
use host::moments::Moments;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// Time for responses to leave after the log has failed.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Connections in the listener's backlog; the system may have a lower bound.
const BACKLOG_MAX: i32 = 4_096;

/// A listener on the address of a setting, and its actual address.
pub fn listening(setting: &str, listen: SocketAddr) -> Result<(TcpListener, SocketAddr), BootError> {
    let listener = TcpListener::bind(listen).map_err(io(format!("listening on {listen} ({setting})")))?;
    // With a shorter backlog, clients of a burst of connections would wait a second for their second attempt.
    rustix::net::listen(&listener, BACKLOG_MAX).map_err(|error| io("the listener")(error.into()))?;
    let address = listener.local_addr().map_err(io("the listener's address"))?;
    listener.set_nonblocking(true).map_err(io("the listener"))?;
    if setting == "admin.listen" && !address.ip().is_loopback() {
        tracing::warn!(%address, "the metrics of the admin listener need no token: every client that reaches this \
            address can read them");
    }
    Ok((listener, address))
}

/// What stops a server besides a signal: a failure of the log, and the end of a back-test.
pub struct Stopping {
    pub failed: mpsc::UnboundedReceiver<String>,
    pub moments: Option<Arc<Moments>>,
}

/// Serves until a signal comes, the log fails, or the back-test ends. `asked`: requests of measures for each IO thread.
pub async fn listen_until_stopped(
    listener: TcpListener,
    mut asked: Vec<Asked>,
    edge: Rc<Edge>,
    runtime: &Runtime,
    Stopping { mut failed, moments }: Stopping,
) -> Result<(), BootError> {
    let (end, ending) = watch::channel(false);
    let app = edge.app.clone();
    if let Some(asked) = asked.pop() {
        tokio::task::spawn_local(measure_when_asked(edge.clone(), asked));
    }
    let io_threads =
        layout::spawn_io(asked, &listener, &app, runtime.inboxes(), &ending).map_err(io("a thread for sockets"))?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(io("the listener"))?;
    let serving = tokio::task::spawn_local(server::serve(listener, edge, app.front.connections.clone(), ending));
    let mut terminate = signal(SignalKind::terminate()).map_err(io("the handler of SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io("the handler of SIGINT"))?;
    let ended = async {
        match moments {
            Some(moments) => moments.ended().await,
            None => std::future::pending().await,
        }
    };
    let failure = tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        () = ended => None,
        why = failed.recv() => why,
    };
    if let Some(why) = failure {
        // Waiting requests get the response that their outcome is unknown; after that there are no responses.
        tokio::time::sleep(LAST_WORDS).await;
        return Err(BootError::Journal(why));
    }
    tracing::info!("stopping: requests in flight are finished, new ones are refused");
    // The receivers are gone only if serving has ended on its own.
    let _ = end.send(true);
    let mut cut_off = serving.await.unwrap_or(0);
    for thread in io_threads {
        // A panic of the thread has aborted the process.
        cut_off += thread.join().map_or(Ok(0), |served| served).unwrap_or(0);
    }
    if cut_off > 0 {
        tracing::warn!(cut_off, "connections were closed because they did not end in time");
    }
    Ok(())
}
