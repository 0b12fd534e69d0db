//! Three members of one cluster, for tests in which one of them fails.

use std::{io, net::SocketAddr};

use conformance_tests::{PrivateServer, Recipe, free_address};

use crate::support::server::{is_healthy, member};

/// A cluster of three. Its election timeout allows leases of one second, and gives a busy machine time for a heartbeat.
#[derive(Debug)]
pub(crate) struct Cluster {
    members: Vec<PrivateServer>,
}

impl Cluster {
    pub(crate) fn start() -> io::Result<Self> {
        let peers: Vec<SocketAddr> = (0..3).map(|_| free_address()).collect::<Result<_, _>>()?;
        let all: Vec<String> = peers.iter().enumerate().map(|(i, peer)| format!("n{i}=http://{peer}")).collect();
        let all = all.join(",");
        // A member is ready only with a majority: so they start beside each other.
        let starts: Vec<_> = peers
            .into_iter()
            .enumerate()
            .map(|(i, peer)| {
                let all = all.clone();
                let recipe: Recipe = Box::new(move |directory, client| {
                    let mut command = member(&format!("n{i}"), directory, client, peer, &all);
                    command.args(["--heartbeat-interval", "60", "--election-timeout", "600"]);
                    command
                });
                std::thread::spawn(move || PrivateServer::start(recipe, Box::new(is_healthy)))
            })
            .collect();
        let mut members = Vec::new();
        for start in starts {
            members.push(start.join().map_err(|_| io::Error::other("a starting thread panicked"))??);
        }
        Ok(Cluster { members })
    }

    pub(crate) fn member(&self, index: usize) -> &PrivateServer {
        &self.members[index]
    }

    /// Where the members listen, in the form that a configuration takes.
    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.address().to_string()).collect()
    }
}
