//! The contract, endpoint by endpoint, over a real socket.
