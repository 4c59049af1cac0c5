//! Streams: connections, reasons for closing, and the lag of deliveries after the feed.

use super::family::{Family, Writer};
use edge::streams::Streams;
use std::fmt::Error;

const OPEN: Family = Family::new(
    "papertape_sockets_open",
    "Streams open by channel: WebSockets, and prices_stream for server-sent events",
);
const OPENED: Family = Family::new("papertape_sockets_opened_total", "WebSockets opened since the start, by channel");
const CLOSED: Family = Family::new(
    "papertape_sockets_closed_total",
    "WebSockets ended since the start, by the reason that the server decided on; SLOW_CONSUMER: the peer did not read",
);
const FRAMES_QUEUED: Family = Family::new(
    "papertape_socket_frames_queued",
    "Frames that wait for WebSocket peers to read, all sockets together, within the last second",
);
const BYTES_QUEUED: Family = Family::new(
    "papertape_socket_queued_bytes",
    "Bytes that wait for WebSocket peers to read, all sockets together, within the last second",
);
const LAG: Family = Family::new(
    "papertape_fan_out_lag_seconds",
    "From the feed taking a frame of the venue to its fan-out to the streams, for the oldest of those that waited together",
);
const LOST: Family = Family::new(
    "papertape_fan_out_lost_total",
    "Updates that found the queue of a thread full; each stream of that thread then receives its full state again",
);
const WAITING: Family =
    Family::new("papertape_fan_out_queued", "Updates of the feed that wait for the fan-out, all threads together");

pub(super) fn write(streams: &Streams, out: &mut Writer<'_>) -> Result<(), Error> {
    let channels = streams.seats.channels();
    let events = ("prices_stream", streams.events.open());
    let open = channels.iter().map(|(channel, count)| (channel.word(), count.open));
    out.gauges_by(&OPEN, "channel", open.chain([events]))?;
    out.counters_by(&OPENED, "channel", channels.iter().map(|(channel, count)| (channel.word(), count.opened)))?;
    out.counters_by(&CLOSED, "reason", streams.seats.closes())?;
    let queued = streams.seats.queued();
    out.gauge(&FRAMES_QUEUED, queued.frames)?;
    out.gauge(&BYTES_QUEUED, queued.bytes)?;
    let lag = streams.news.lag().map(|lag| (&[][..], lag.counted()));
    out.histograms(&LAG, lag)?;
    out.counter(&LOST, streams.news.lost())?;
    out.gauge(&WAITING, streams.news.waiting())
}
