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
        let (all, of_layer) = (&mut self.of_layer, &other.of_layer);
        for (sum, part) in [
            (&mut all.statuses, &of_layer.statuses),
            (&mut all.accepted, &of_layer.accepted),
            (&mut all.by_address, &of_layer.by_address),
        ] {
            part.iter().for_each(|(name, n)| *sum.entry(name.clone()).or_default() += n);
        }
        all.causes.merge(&of_layer.causes);
        if let Some(streams) = &of_layer.streams {
            all.streams.get_or_insert_default().merge(streams);
        }
        if let Some(handshakes) = of_layer.handshakes {
            *all.handshakes.get_or_insert_default() += handshakes;
        }
        all.tls = all.tls.take().or_else(|| of_layer.tls.clone());
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
            causes: self.of_layer.causes.counted_in(&self.errors),
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
            by_status: self.status_counts(),
            tcp: self.tcp.map(|client| TcpEnds { client: Some(client), server: None }),
            ..self.of_layer.clone()
        }
    }
}
