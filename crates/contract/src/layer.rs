//! Layers and workloads by their names.

use crate::named::named;

named! {
    /// The protocol under measurement.
    Layer, "layer" {
        /// No protocol: an event loop alone.
        None = "none",
        Tcp = "tcp",
        Tls = "tls",
        Udp = "udp",
        Kcp = "kcp",
        /// The protocol of performance tests on streams of QUIC.
        Quic = "quic",
        WebSocket = "websocket",
        Wss = "wss",
        /// HTTP/1.1.
        Http = "http",
        Https = "https",
        /// HTTP/2 with prior knowledge.
        H2c = "h2c",
        /// HTTP/2 over TLS, by ALPN.
        H2 = "h2",
        H3 = "h3",
    }
}

named! {
    /// The traffic pattern.
    Workload, "workload" {
        /// Request and response, one outstanding on each open connection or stream.
        Rr = "rr",
        /// Connect, one request and response, close.
        Crr = "crr",
        /// Bulk transfer in one direction or both.
        Stream = "stream",
        /// One message to every connection, complete after the slowest response.
        Fanout = "fanout",
        /// Post and run handlers of an event loop.
        Dispatch = "dispatch",
        /// Bytes from one connection to another.
        Relay = "relay",
    }
}

impl Layer {
    /// Both ends have keys.
    #[must_use]
    pub fn has_tls(self) -> bool {
        self.without_tls() != self
    }

    /// The layer of a server behind a relay that ends TLS. QUIC has no form without it: behind a relay is
    /// another protocol.
    #[must_use]
    pub const fn without_tls(self) -> Self {
        match self {
            Self::Https | Self::H3 => Self::Http,
            Self::H2 => Self::H2c,
            Self::Quic | Self::Tls => Self::Tcp,
            Self::Wss => Self::WebSocket,
            other => other,
        }
    }

    /// Servers receive datagrams, and listen for nothing.
    #[must_use]
    pub const fn is_of_datagrams(self) -> bool {
        matches!(self, Self::Udp | Self::Kcp | Self::H3 | Self::Quic)
    }

    /// A version of HTTP: requests, statuses, pages.
    #[must_use]
    pub const fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Https | Self::H2c | Self::H2 | Self::H3)
    }

    /// A connection has several streams.
    #[must_use]
    pub const fn has_streams(self) -> bool {
        matches!(self, Self::H2c | Self::H2 | Self::H3 | Self::Quic)
    }

    /// WebSocket, with or without TLS.
    #[must_use]
    pub const fn is_websocket(self) -> bool {
        matches!(self, Self::WebSocket | Self::Wss)
    }
}

impl Workload {
    /// Operations are round trips, whether or not connections stay.
    #[must_use]
    pub const fn is_of_round_trips(self) -> bool {
        matches!(self, Self::Rr | Self::Crr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_and_an_unknown_one_is_refused_with_the_nearest() {
        for layer in Layer::ALL {
            assert_eq!(layer.as_str().parse(), Ok(*layer));
            assert_eq!(serde_json::to_string(layer).unwrap(), format!("{layer:?}"));
        }
        assert_eq!(serde_json::from_str::<Workload>("\"\"").unwrap(), Workload::Unnamed);
        assert!("htp".parse::<Layer>().unwrap_err().contains("http"));
        assert!(serde_json::from_str::<Workload>("\"churn\"").is_err());
    }
}
