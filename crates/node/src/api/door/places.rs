//! Who holds how many connections, and how many bytes of bodies.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::limits::HttpLimits;

/// Everybody's connections.
#[derive(Debug, Default)]
pub(in crate::api) struct Places {
    clients: Mutex<BTreeMap<String, Arc<Client>>>,
    all: AtomicUsize,
}

/// What one client holds.
#[derive(Debug, Default)]
struct Client {
    connections: AtomicUsize,
    body_bytes: AtomicUsize,
}

/// A connection's place; it is free again when this is dropped.
#[derive(Debug)]
pub(in crate::api) struct Place {
    places: Arc<Places>,
    name: String,
    client: Arc<Client>,
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::api) enum Full {
    #[error("the node has no room for more than {0} connections at once")]
    Node(usize),
    #[error("you have {0} connections to this node already; use them, or another node")]
    Client(usize),
}

impl Places {
    /// A place for one more connection of a client.
    pub(super) fn take(self: &Arc<Self>, name: &str, limits: &HttpLimits) -> Result<Place, Full> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if self.all.load(Ordering::Relaxed) >= limits.connections_max {
            return Err(Full::Node(limits.connections_max));
        }
        let client = clients.entry(name.to_owned()).or_default();
        let max = limits.connections_per_client_max;
        if client.connections.load(Ordering::Relaxed) >= max {
            return Err(Full::Client(max));
        }
        client.connections.fetch_add(1, Ordering::Relaxed);
        self.all.fetch_add(1, Ordering::Relaxed);
        Ok(Place {
            places: self.clone(),
            name: name.to_owned(),
            client: client.clone(),
        })
    }

    /// Connections that have a place.
    pub(in crate::api) fn count(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut clients = self
            .places
            .clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.places.all.fetch_sub(1, Ordering::Relaxed);
        if self.client.connections.fetch_sub(1, Ordering::Relaxed) == 1 {
            clients.remove(&self.name);
        }
    }
}

/// Room for a body; it is free again when this is dropped.
#[derive(Debug)]
pub(in crate::api) struct BodyRoom {
    client: Arc<Client>,
    bytes: usize,
}

impl Place {
    /// Room for a body, if the client's others leave so much.
    pub(in crate::api) fn body_room(&self, bytes: usize, max_bytes: usize) -> Option<BodyRoom> {
        let held = &self.client.body_bytes;
        let more = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= max_bytes);
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        Some(BodyRoom {
            client: self.client.clone(),
            bytes,
        })
    }
}

impl Drop for BodyRoom {
    fn drop(&mut self) {
        self.client
            .body_bytes
            .fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Full, Places};
    use crate::api::limits::HttpLimits;

    #[test]
    fn places_and_room_are_given_back() {
        let limits = HttpLimits {
            connections_max: 3,
            connections_per_client_max: 2,
            ..HttpLimits::default()
        };
        let places = Arc::new(Places::default());
        let take = |name| places.take(name, &limits);
        let (first, second) = (take("a").unwrap(), take("a").unwrap());
        assert_eq!(take("a").unwrap_err(), Full::Client(2));
        let third = take("b").unwrap();
        assert_eq!(take("c").unwrap_err(), Full::Node(3));
        // Bodies of one client count together, over all its connections.
        let room = first.body_room(60, 100).unwrap();
        assert!(second.body_room(50, 100).is_none());
        assert!(third.body_room(50, 100).is_some());
        assert!(second.body_room(usize::MAX, 100).is_none());
        drop(room);
        assert!(second.body_room(100, 100).is_some());
        drop(first);
        assert_eq!(places.count(), 2);
        drop(take("a").unwrap());
        drop((second, third));
        assert_eq!(places.count(), 0);
        assert!(places.clients.lock().unwrap().is_empty());
    }
}
