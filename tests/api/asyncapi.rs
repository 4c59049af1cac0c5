//! The AsyncAPI document that the server serves.

use serde_json::Value;
use tests::cases::Cases;
use tests::json::text;
use tests::world::World;

#[test]
fn every_channel_is_described_and_every_described_one_is_there() {
    let cases = Cases::of("channels of the description");
    let world = World::start(0);
    let document = world.public().get("/v1/asyncapi.json").expect(200);
    assert_eq!(document["asyncapi"], "3.0.0");
    let mut described = Vec::new();
    for (name, channel) in document["channels"].as_object().expect("channels") {
        let messages = channel["messages"].as_object().expect("messages");
        assert!(messages.values().all(|message| message["examples"][0]["payload"] != Value::Null), "{name}");
        let also_at = channel["x-also-at"].as_str();
        for path in [text(channel, "/address")].into_iter().chain(also_at) {
            // It is only a socket.
            world.public().get(path).refused(400, "INVALID_REQUEST");
            cases.one();
        }
        described.push(text(channel, "/address").to_owned());
    }
    let mut known: Vec<_> = edge::ws::TABLES.iter().flat_map(|table| table.iter()).map(|route| route.path).collect();
    known.retain(|path| path.contains("/ws/"));
    known.sort_unstable();
    described.sort_unstable();
    assert_eq!(described, known);
}
