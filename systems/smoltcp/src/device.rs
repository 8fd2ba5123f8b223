//! The TUN device as smoltcp's [`Device`], with or without offloads.
//!
//! With offloads each packet follows a `virtio_net_hdr` (include/uapi/linux/virtio_net.h): the kernel passes
//! and accepts segments of up to 64 KiB that are neither segmented nor checksummed.

use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, PacketMeta, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{IpProtocol, Ipv4Packet, TcpPacket};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, RawFd};
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_LEN, VirtioNetHdr};

/// The largest packet of IPv4.
const LARGEST_PACKET: usize = 65_535;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum from `csum_start` on is missing.
const NEEDS_CHECKSUM: u8 = 1;
/// The position of the checksum in the TCP header.
const TCP_CHECKSUM: usize = 16;

pub struct TunDevice {
    tun: SyncDevice,
    mtu: u16,
    /// Bytes before each packet: those of a `virtio_net_hdr`, or none.
    header: usize,
    /// The last packet read, header included, until the stack takes it.
    received: Vec<u8>,
    length: Option<usize>,
    sent: Vec<u8>,
}

impl TunDevice {
    pub fn open(name: &str, mtu: u16, offload: bool) -> io::Result<Self> {
        let builder = DeviceBuilder::new().name(name).offload(offload).packet_information(false);
        // The lab has configured the device.
        let tun = builder.inherit_enable_state().build_sync()?;
        tun.set_nonblocking(true)?;
        let header = if offload { VIRTIO_NET_HDR_LEN } else { 0 };
        let room = vec![0; header + LARGEST_PACKET];
        Ok(Self { tun, mtu, header, received: room.clone(), length: None, sent: room })
    }

    /// Reads a packet; false if there is none.
    pub fn read(&mut self) -> io::Result<bool> {
        match self.tun.recv(&mut self.received) {
            Ok(n) => {
                self.length = Some(n.saturating_sub(self.header));
                Ok(true)
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// True if the last packet read is a SYN to this address.
    pub fn has_first_packet_for(&self, address: SocketAddr) -> bool {
        let packet = &self.received[self.header..][..self.length.unwrap_or(0)];
        let Ok(ip) = Ipv4Packet::new_checked(packet) else { return false };
        let Ok(tcp) = TcpPacket::new_checked(ip.payload()) else { return false };
        ip.next_header() == IpProtocol::Tcp
            && IpAddr::from(ip.dst_addr()) == address.ip()
            && tcp.dst_port() == address.port()
            && tcp.syn()
            && !tcp.ack()
    }
}

impl AsRawFd for TunDevice {
    fn as_raw_fd(&self) -> RawFd {
        self.tun.as_raw_fd()
    }
}

impl Device for TunDevice {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = ToSend<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, ToSend<'_>)> {
        let length = self.length.take()?;
        let to_send = ToSend {
            tun: &self.tun,
            buffer: &mut self.sent,
            header: self.header,
            meta: PacketMeta::default(),
        };
        Some((Received(&self.received[self.header..][..length]), to_send))
    }

    fn transmit(&mut self, _: Instant) -> Option<ToSend<'_>> {
        Some(ToSend {
            tun: &self.tun,
            buffer: &mut self.sent,
            header: self.header,
            meta: PacketMeta::default(),
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu.into();
        if self.header > 0 {
            capabilities.checksum.tcp = Checksum::None;
            // The kernel passes datagrams without a checksum, and accepts them without one (RFC 768).
            capabilities.checksum.udp = Checksum::None;
            capabilities.segmentation.tcpv4 = NonZeroUsize::new(LARGEST_PACKET);
        }
        capabilities
    }
}

pub struct Received<'a>(&'a [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

pub struct ToSend<'a> {
    tun: &'a SyncDevice,
    buffer: &'a mut [u8],
    header: usize,
    meta: PacketMeta,
}

impl TxToken for ToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let (header, rest) = self.buffer.split_at_mut(self.header);
        let packet = &mut rest[..length];
        let result = f(packet);
        if !header.is_empty() {
            let described = describe(packet, self.meta.segmentation_offload_size.map(u16::from));
            described.encode(header).expect("it has the size of the header");
        }
        // A packet that the device refuses is lost, as on a link: TCP retransmits it.
        let _ = self.tun.send(&self.buffer[..self.header + length]);
        result
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.meta = meta;
    }
}

/// The header that makes the kernel segment the packet and finish its TCP checksum. The packet gets the part
/// of the checksum over the addresses.
fn describe(packet: &mut [u8], segment: Option<u16>) -> VirtioNetHdr {
    let Ok(ip) = Ipv4Packet::new_checked(&*packet) else { return VirtioNetHdr::default() };
    if ip.next_header() != IpProtocol::Tcp {
        return VirtioNetHdr::default();
    }
    let start = usize::from(ip.header_len());
    let sum = pseudo_header_sum(ip.src_addr().octets(), ip.dst_addr().octets(), packet.len() - start);
    packet[start + TCP_CHECKSUM..][..2].copy_from_slice(&sum.to_be_bytes());
    let headers = start + usize::from(packet[start + 12] >> 4) * 4;
    VirtioNetHdr {
        flags: NEEDS_CHECKSUM,
        gso_type: if segment.is_some() { VIRTIO_NET_HDR_GSO_TCPV4 } else { 0 },
        hdr_len: headers as u16,
        gso_size: segment.unwrap_or(0),
        csum_start: start as u16,
        csum_offset: TCP_CHECKSUM as u16,
    }
}

/// RFC 9293, 3.1: the one's complement sum of addresses, protocol and length, not inverted.
fn pseudo_header_sum(source: [u8; 4], destination: [u8; 4], length: usize) -> u16 {
    let words =
        [source, destination].into_iter().flat_map(|[a, b, c, d]| [[a, b], [c, d]]).map(u16::from_be_bytes);
    let mut sum = words.map(u32::from).sum::<u32>() + u32::from(u8::from(IpProtocol::Tcp)) + length as u32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{IpAddress, Ipv4Address, Ipv4Repr, TcpControl, TcpRepr, TcpSeqNumber};

    const SOURCE: Ipv4Address = Ipv4Address::new(10, 77, 1, 100);
    const DESTINATION: Ipv4Address = Ipv4Address::new(10, 77, 1, 2);

    fn packet(payload: &[u8], checksums: &ChecksumCapabilities) -> Vec<u8> {
        let tcp = TcpRepr {
            src_port: 80,
            dst_port: 5000,
            control: TcpControl::Psh,
            seq_number: TcpSeqNumber(1),
            ack_number: Some(TcpSeqNumber(2)),
            window_len: 3,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload,
        };
        let ip = Ipv4Repr {
            src_addr: SOURCE,
            dst_addr: DESTINATION,
            next_header: IpProtocol::Tcp,
            payload_len: tcp.buffer_len(),
            hop_limit: 64,
        };
        let mut bytes = vec![0; ip.buffer_len() + tcp.buffer_len()];
        let mut packet = Ipv4Packet::new_unchecked(&mut bytes[..]);
        ip.emit(&mut packet, checksums);
        let mut segment = TcpPacket::new_unchecked(packet.payload_mut());
        tcp.emit(&mut segment, &IpAddress::Ipv4(SOURCE), &IpAddress::Ipv4(DESTINATION), checksums);
        bytes
    }

    #[test]
    fn the_kernel_can_finish_the_checksum() {
        let whole = packet(b"some content", &ChecksumCapabilities::default());
        let mut part = packet(b"some content", &ChecksumCapabilities::ignored());
        let header = describe(&mut part, None);
        let (start, offset) = (usize::from(header.csum_start), usize::from(header.csum_offset));
        // The kernel's part of NEEDS_CSUM: sum up from csum_start, the checksum field included, and invert.
        let mut sum: u32 = part[start..]
            .chunks(2)
            .map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| u32::from(*b)))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        assert_eq!((!(sum as u16)).to_be_bytes(), whole[start + offset..][..2]);
    }

    #[test]
    fn a_packet_to_segment_has_the_segment_size_in_its_header() {
        let mut long = packet(&[7; 5000], &ChecksumCapabilities::ignored());
        let header = describe(&mut long, Some(1460));
        assert_eq!((header.gso_type, header.gso_size, header.hdr_len), (VIRTIO_NET_HDR_GSO_TCPV4, 1460, 40));
        assert_eq!(describe(&mut [0; 3], Some(1460)).gso_type, 0);
    }
}
