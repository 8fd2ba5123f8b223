//! The rtnetlink(7) requests of a topology, sent one by one and each acknowledged.

use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

/// A socket of the network namespace in which it was opened.
pub(super) struct Netlink(Socket);

/// The attribute of a discipline's own options (`linux/rtnetlink.h`).
const TCA_OPTIONS: u16 = 2;
/// An acknowledgement is under 100 bytes; the kernel adds the request to an error.
const RESPONSE: usize = 8 << 10;

impl Netlink {
    /// Opens a socket in the current network namespace.
    pub(super) fn open() -> Result<Self, String> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        open().map(Self).map_err(|e: std::io::Error| format!("cannot open a netlink socket: {e}"))
    }

    /// Adds a veth pair: `name` here, `peer` in the namespace `there`; see veth(4). With `is_segmented`, what
    /// leaves `name` has one segment in a packet, as on a wire, and not up to 64 KiB.
    pub(super) fn add_veth(
        &self,
        name: &str,
        peer: &str,
        there: BorrowedFd<'_>,
        mtu: u32,
        is_segmented: bool,
    ) -> Result<(), String> {
        let mut far = LinkMessage::default();
        far.attributes = vec![
            LinkAttribute::IfName(peer.into()),
            LinkAttribute::NetNsFd(there.as_raw_fd()),
            LinkAttribute::Mtu(mtu),
        ];
        let mut near = LinkMessage::default();
        near.attributes = vec![
            LinkAttribute::IfName(name.into()),
            LinkAttribute::Mtu(mtu),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
            ]),
        ];
        if is_segmented {
            near.attributes.push(LinkAttribute::GsoMaxSegs(1));
        }
        let create = NLM_F_CREATE | NLM_F_EXCL;
        self.request(
            RouteNetlinkMessage::NewLink(near),
            create,
            &format!("adding the veth pair {name} - {peer}"),
        )
    }

    /// Adds a bridge; see bridge(8).
    pub(super) fn add_bridge(&self, name: &str) -> Result<(), String> {
        let mut bridge = LinkMessage::default();
        bridge.attributes = vec![
            LinkAttribute::IfName(name.into()),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
        ];
        let create = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewLink(bridge), create, "adding a bridge")
    }

    /// Makes a link a port of a bridge.
    pub(super) fn set_controller(&self, index: u32, bridge: u32) -> Result<(), String> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.attributes = vec![LinkAttribute::Controller(bridge)];
        self.request(RouteNetlinkMessage::SetLink(link), 0, "adding a link to a bridge")
    }

    /// Sets a queueing discipline of what leaves a link, at the root or below the first class of `parent`;
    /// see tc(8).
    pub(super) fn replace_qdisc(
        &self,
        link: u32,
        kind: &str,
        handle: u16,
        parent: Option<u16>,
        options: &[u8],
    ) -> Result<(), String> {
        let mut message = TcMessage::with_index(link as i32);
        message.header.handle = TcHandle { major: handle, minor: 0 };
        message.header.parent = parent.map_or(TcHandle::ROOT, |major| TcHandle { major, minor: 1 });
        message.attributes = vec![
            TcAttribute::Kind(kind.into()),
            TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options.to_vec())),
        ];
        let doing = format!("the queueing discipline {kind} (does the kernel have sch_{kind}?)");
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.request(RouteNetlinkMessage::NewQueueDiscipline(message), flags, &doing)
    }

    pub(super) fn set_mtu(&self, index: u32, mtu: u32) -> Result<(), String> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.attributes = vec![LinkAttribute::Mtu(mtu)];
        self.request(RouteNetlinkMessage::SetLink(link), 0, &format!("setting a link's MTU to {mtu}"))
    }

    pub(super) fn set_up(&self, index: u32) -> Result<(), String> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(link), 0, "setting a link up")
    }

    pub(super) fn add_address(&self, index: u32, address: Ipv4Addr, prefix: u8) -> Result<(), String> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.index = index;
        message.header.prefix_len = prefix;
        let address = IpAddr::V4(address);
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        let create = NLM_F_CREATE | NLM_F_EXCL;
        self.request(
            RouteNetlinkMessage::NewAddress(message),
            create,
            &format!("adding the address {address}"),
        )
    }

    /// A route to a network of this prefix; of the prefix 0: to all others.
    pub(super) fn add_route(
        &self,
        (network, prefix): (Ipv4Addr, u8),
        gateway: Ipv4Addr,
    ) -> Result<(), String> {
        let mut route = RouteMessage::default();
        route.header.address_family = AddressFamily::Inet;
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.scope = RouteScope::Universe;
        route.header.kind = RouteType::Unicast;
        route.header.destination_prefix_length = prefix;
        route.attributes = vec![RouteAttribute::Gateway(RouteAddress::Inet(gateway))];
        if prefix > 0 {
            route.attributes.push(RouteAttribute::Destination(RouteAddress::Inet(network)));
        }
        let create = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewRoute(route), create, &format!("adding the route by {gateway}"))
    }

    fn request(&self, message: RouteNetlinkMessage, flags: u16, doing: &str) -> Result<(), String> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        let failed = |e: &dyn std::fmt::Display| format!("{doing}: {e}");
        self.0.send(&bytes, 0).map_err(|e| failed(&e))?;
        let mut response = Vec::with_capacity(RESPONSE);
        self.0.recv(&mut response, 0).map_err(|e| failed(&e))?;
        let response =
            NetlinkMessage::<RouteNetlinkMessage>::deserialize(&response).map_err(|e| failed(&e))?;
        match response.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(failed(&error.to_io())),
            NetlinkPayload::Error(_) => Ok(()),
            other => Err(failed(&format!("unexpected response of the kernel: {other:?}"))),
        }
    }
}
