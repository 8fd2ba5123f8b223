//! The counters of all threads as one result.

use super::Meter;
use linerate_contract::{Bytes, Done, Nanos, TcpEnds};

impl Meter {
    /// Adds the counters of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.verified += other.verified;
        self.in_flight += other.in_flight;
        self.uncounted += other.uncounted;
        self.closed_idle += other.closed_idle;
        self.unserved += other.unserved;
        self.stall = self.stall.min(other.stall);
        self.merge_statuses(other);
        self.errors.merge(&other.errors);
        self.latency.merge(&other.latency);
        self.connect.merge(&other.connect);
        self.merge_details(other);
        self.add_tcp(other.tcp);
        for (sum, part) in [
            (&mut self.statuses, &other.statuses),
            (&mut self.accepted, &other.accepted),
            (&mut self.by_address, &other.by_address),
        ] {
            part.iter().for_each(|(name, n)| *sum.entry(name.clone()).or_default() += n);
        }
        self.causes.merge(&other.causes);
        if let Some(streams) = &other.streams {
            self.streams.get_or_insert_default().merge(streams);
        }
        if let Some(handshakes) = other.handshakes {
            *self.handshakes.get_or_insert_default() += handshakes;
        }
        self.tls = self.tls.take().or_else(|| other.tls.clone());
        if let (Some(paced), Some(other)) = (&mut self.paced, &other.paced) {
            paced.merge(other);
        }
    }

    /// The result in the form of the contract.
    pub fn done(&self, cpu: Nanos) -> Done {
        Done {
            operations: self.operations,
            bytes: Bytes(self.bytes),
            start_ns: self.start,
            end_ns: self.end,
            in_flight: self.in_flight,
            counted_ns: self.alternation.map(|turns| turns.counted(self.start, self.end)),
            uncounted: self.uncounted,
            closed_idle: self.closed_idle,
            unserved: self.unserved,
            stall_ns: Some(self.stall),
            errors: self.errors.clone(),
            causes: self.causes.counted_in(&self.errors),
            accepted: self.accepted.clone(),
            latency: Some(self.latency.counts()),
            service: self.paced.as_ref().map(|paced| paced.service.counts()),
            first_byte: self.first_byte(),
            events: self.event_counts(),
            requests: self.request_counts(),
            schedule: self.paced.as_ref().map(|paced| paced.adherence()),
            polling_ns: self.paced.as_ref().map(|paced| paced.polling),
            connect: Some(self.connect.counts()),
            cpu_ns: cpu,
            verified: self.verified,
            statuses: self.statuses.clone(),
            by_status: self.status_counts(),
            by_address: self.by_address.clone(),
            streams: self.streams.clone(),
            tls: self.tls.clone(),
            handshakes: self.handshakes,
            tcp: self.tcp.map(|client| TcpEnds { client: Some(client), server: None }),
            ..Done::default()
        }
    }
}
