//! Frames of the user channel that several sockets of one user share, on any thread. Each is encoded once for all
//! sockets with the same style.
//!
//! Sockets with the same [`FrameStyle`] form a group. The first socket of a group that reaches a fact encodes its
//! frames. They are cached until the last socket has passed that fact, so a group whose sockets keep pace caches almost
//! nothing. A socket alone in its group takes no lock and caches nothing.

use super::frame::Frame;
use crate::http::dialect::Dialect;
use ahash::AHashMap;
use engine::id::UserId;
use engine::shard::facts::FACTS_PER_PAGE_MAX;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Most facts whose frames a group caches: those of one page. Older ones are encoded again.
const FACTS_CACHED_MAX: usize = FACTS_PER_PAGE_MAX;

/// What decides the form of a socket's frames. Sockets with equal styles are sent equal bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FrameStyle {
    pub user: UserId,
    pub dialect: Dialect,
    /// The owner in the frames.
    pub owner: Arc<str>,
    /// Whether frames have `user_seq`.
    pub numbered: bool,
    /// Whether `order` frames are sent in addition to `trade` frames.
    pub sends_orders: bool,
}

impl fmt::Debug for FrameStyle {
    /// Without `owner`, which can be a key in the form of the venue's clients.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FrameStyle { user, dialect, owner: _, numbered, sends_orders } = self;
        let mut shown = f.debug_struct("FrameStyle");
        shown.field("user", user).field("dialect", dialect).field("numbered", numbered);
        shown.field("sends_orders", sends_orders).finish_non_exhaustive()
    }
}

/// The frames of one fact: `trade` and `order`, if the style has them.
pub type FactFrames = [Option<Frame>; 2];

/// The groups of all users; shared by all IO threads.
#[derive(Debug, Default)]
pub struct UserFrames(Mutex<AHashMap<FrameStyle, Arc<Group>>>);

#[derive(Debug, Default)]
struct Group {
    /// Length of `State::members`.
    size: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    /// Each socket, with the number of the last fact that it reached; 0 before the first.
    members: Vec<(u64, u64)>,
    /// By number of the fact.
    cached: BTreeMap<u64, FactFrames>,
}

/// A socket's membership in the group of its style, which ends on drop.
#[derive(Debug)]
pub struct Member {
    all: Arc<UserFrames>,
    style: FrameStyle,
    group: Arc<Group>,
    id: u64,
}

impl UserFrames {
    /// Adds a socket with that style to its group.
    pub fn join(self: &Arc<Self>, style: FrameStyle) -> Member {
        let mut groups = self.0.lock();
        let group = Arc::clone(groups.entry(style.clone()).or_default());
        let mut state = group.state.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.members.push((id, 0));
        group.size.store(state.members.len(), Relaxed);
        drop(state);
        Member { all: Arc::clone(self), style, group, id }
    }
}

impl Member {
    pub fn style(&self) -> &FrameStyle {
        &self.style
    }

    /// The frames of fact number `seq`: cached by another socket of the group, else made by `make`. The numbers in the
    /// calls of one socket, including [`Member::pass`], ascend.
    pub fn frames(&self, seq: u64, make: impl FnOnce() -> FactFrames) -> FactFrames {
        if self.is_alone() {
            return make();
        }
        let mut state = self.group.state.lock();
        let frames = state.cached.entry(seq).or_insert_with(make).clone();
        if state.cached.len() > FACTS_CACHED_MAX {
            state.cached.pop_first();
        }
        state.advance(self.id, seq);
        frames
    }

    /// Records that the socket gets no frames of fact number `seq`.
    pub fn pass(&self, seq: u64) {
        if !self.is_alone() {
            self.group.state.lock().advance(self.id, seq);
        }
    }

    fn is_alone(&self) -> bool {
        self.group.size.load(Relaxed) == 1
    }
}

impl State {
    /// Records that a socket has reached that fact, and drops frames that every socket has passed.
    fn advance(&mut self, id: u64, seq: u64) {
        if let Some((_, last)) = self.members.iter_mut().find(|(member, _)| *member == id) {
            *last = seq;
        }
        self.drop_passed();
    }

    fn drop_passed(&mut self) {
        let passed = self.members.iter().map(|(_, last)| *last).min().unwrap_or(u64::MAX);
        while self.cached.first_key_value().is_some_and(|(seq, _)| *seq <= passed) {
            self.cached.pop_first();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut groups = self.all.0.lock();
        let mut state = self.group.state.lock();
        state.members.retain(|(id, _)| *id != self.id);
        self.group.size.store(state.members.len(), Relaxed);
        match state.members.len() {
            0 => _ = groups.remove(&self.style),
            // A socket alone uses no cached frames.
            1 => state.cached.clear(),
            _ => state.drop_passed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn style(owner: &str, dialect: Dialect) -> FrameStyle {
        FrameStyle { user: UserId(7), dialect, owner: owner.into(), numbered: false, sends_orders: true }
    }

    /// A socket's frames of a fact, and how many facts have been encoded so far.
    fn frames_of(member: &Member, seq: u64, encoded: &Cell<usize>) -> (Vec<u8>, usize) {
        let [trade, order] = member.frames(seq, || {
            encoded.set(encoded.get() + 1);
            [None, Some(Frame::text(format!("{} {seq}", member.style().owner).as_bytes()))]
        });
        assert_eq!(trade, None);
        (order.expect("an order frame").payload().to_vec(), encoded.get())
    }

    fn cached(member: &Member) -> usize {
        member.group.state.lock().cached.len()
    }

    #[test]
    fn debug_output_has_no_key() {
        let shown = format!("{:?}", style("0f8fad5b-d9cb-469f-a165-70867728950e", Dialect::Strict));
        assert!(shown.contains("UserId(7)") && !shown.contains("0f8fad5b"), "{shown}");
    }

    #[test]
    fn sockets_of_one_style_share_frames_that_the_first_encodes() {
        let all = Arc::<UserFrames>::default();
        let encoded = Cell::new(0);
        let first = all.join(style("a", Dialect::Strict));
        // A socket alone caches nothing.
        assert_eq!(frames_of(&first, 1, &encoded), (b"a 1".to_vec(), 1));
        assert_eq!(cached(&first), 0);
        let (second, third) = (all.join(style("a", Dialect::Strict)), all.join(style("a", Dialect::Strict)));
        let others = [all.join(style("b", Dialect::Strict)), all.join(style("a", Dialect::Plain))];
        for seq in 2..50 {
            for member in [&second, &first, &third] {
                assert_eq!(frames_of(member, seq, &encoded), (format!("a {seq}").into_bytes(), seq as usize));
            }
            assert_eq!(cached(&first), 0, "all have passed it");
        }
        // Another style has its own frames.
        for (member, text) in others.iter().zip(["b 50", "a 50"]) {
            let before = encoded.get();
            assert_eq!(frames_of(member, 50, &encoded), (text.as_bytes().to_vec(), before + 1));
        }
        // A socket that gets no frames of a fact does not block their removal.
        let before = encoded.get();
        frames_of(&first, 50, &encoded);
        frames_of(&second, 50, &encoded);
        assert_eq!((encoded.get(), cached(&first)), (before + 1, 1));
        third.pass(50);
        assert_eq!(cached(&first), 0);
        // Neither does one that leaves.
        frames_of(&first, 51, &encoded);
        frames_of(&third, 51, &encoded);
        assert_eq!(cached(&first), 1);
        drop(second);
        assert_eq!(cached(&first), 0);
        drop((first, third, others));
        assert!(all.0.lock().is_empty(), "a group without sockets is removed");
    }

    #[test]
    fn a_slow_socket_does_not_grow_the_cache() {
        let all = Arc::<UserFrames>::default();
        let encoded = Cell::new(0);
        let [fast, slow] = [(); 2].map(|()| all.join(style("a", Dialect::Strict)));
        let facts = FACTS_CACHED_MAX as u64 + 100;
        (1..=facts).for_each(|seq| _ = frames_of(&fast, seq, &encoded));
        assert_eq!(cached(&fast), FACTS_CACHED_MAX);
        for seq in 1..=facts {
            assert_eq!(frames_of(&slow, seq, &encoded).0, format!("a {seq}").into_bytes());
        }
        assert_eq!(encoded.get(), FACTS_CACHED_MAX + 200, "the first hundred twice");
        assert_eq!(cached(&fast), 0);
    }
}
