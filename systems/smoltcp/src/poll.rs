//! smoltcp as a system of linerate, in a loop of its own on one thread: no runtime, no channel, no lock.
//!
//! ```text
//! device.rs: packets of the TUN device -> poll.rs: a socket for each SYN, smoltcp's poll -> connection.rs: content in and out of
//! the sockets' own buffers (udp.rs: datagrams) -> smoltcp's poll -> device.rs
//! ```
//!
//! `options.offload` decides how the device is driven: `no` as smoltcp's examples do it, a packet for each read and write and all
//! checksums here, asleep when there is none; `yes` with 64 KiB at a time, cut and checksummed by the kernel, and a look before sleep.

mod connection;
mod device;
mod udp;

use connection::Connection;
use device::TunDevice;
use linerate_netstack::{System, Task};
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::phy;
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

const SYSTEM: System = System { name: "smoltcp", version: env!("SMOLTCP_VERSION"), options: &["offload"] };
/// Packets taken in before connections have their turn: as many as fill no receive buffer of one connection.
const BATCH: usize = 64;
/// Each way for a connection. Plain: what netstack-smoltcp has, so that the two rows differ in the way of driving alone.
const PLAIN_BUFFER: usize = 0x3FFF * 20;
/// Sixteen packets of 64 KiB: half would leave the kernel waiting for acknowledgements, twice as much falls out of the L2 cache.
const OFFLOAD_BUFFER: usize = 1 << 20;
/// With offloads, no sleep before nothing came for so long. To wake a sleeper costs the client's CPU more than it takes to hand over a
/// packet, and 64 KiB are over before the sleeper runs.
const LOOK: Duration = Duration::from_micros(100);

fn main() {
    linerate_netstack::run_loop(SYSTEM, |task| {
        let offload = task.option("offload") == Some("yes");
        Stack::new(task, offload)?.run()
    });
}

struct Stack<'a> {
    task: &'a Task,
    device: TunDevice,
    interface: Interface,
    sockets: SocketSet<'static>,
    connections: Vec<(SocketHandle, Connection)>,
    /// Where the layer is `udp`.
    datagrams: Option<udp::Server>,
    /// Closed sockets, whose buffers serve again: to zero new ones takes longer than a short connection lasts.
    spare: Vec<SocketHandle>,
    buffer: usize,
    look: Duration,
}

impl<'a> Stack<'a> {
    fn new(task: &'a Task, offload: bool) -> io::Result<Self> {
        let mut device = TunDevice::open(&task.tun, task.mtu, offload)?;
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, Instant::now());
        let address = task.listen.ip().into();
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(address, 24)).expect("it is the first one")
        });
        // All others are behind the same device, so it does not matter who is named.
        if let IpAddr::V4(own) = task.listen.ip() {
            interface.routes_mut().add_default_ipv4_route(own).expect("it is the first one");
        }
        let mut sockets = SocketSet::new(Vec::new());
        let serve = |datagrams| udp::Server::new(&mut sockets, task.listen, datagrams);
        let datagrams = task.datagrams().map(serve);
        Ok(Self {
            task,
            device,
            interface,
            sockets,
            connections: Vec::new(),
            datagrams,
            spare: Vec::new(),
            buffer: if offload { OFFLOAD_BUFFER } else { PLAIN_BUFFER },
            look: if offload { LOOK } else { Duration::ZERO },
        })
    }

    fn run(mut self) -> io::Result<()> {
        self.task.ready();
        let mut came = std::time::Instant::now();
        loop {
            let taken = self.take_in()?;
            self.serve();
            self.send();
            if taken {
                came = std::time::Instant::now();
            } else if came.elapsed() < self.look {
                // The client may share this CPU.
                std::thread::yield_now();
            } else {
                let delay = self.interface.poll_delay(Instant::now(), &self.sockets);
                match phy::wait(self.device.as_raw_fd(), delay) {
                    // A signal: what it means is not decided here.
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    outcome => outcome?,
                }
            }
        }
    }

    /// Hands packets that wait to the stack; false if there were none.
    fn take_in(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        self.interface.poll_maintenance(now);
        for taken in 0..BATCH {
            if !self.device.read()? {
                return Ok(taken > 0);
            }
            if self.device.has_first_packet_for(self.task.listen) {
                self.listen();
            }
            let result = self.interface.poll_ingress_single(now, &mut self.device, &mut self.sockets);
            debug_assert!(result != PollIngressSingleResult::None, "a packet was there");
        }
        Ok(true)
    }

    /// A socket of smoltcp listens for one connection.
    fn listen(&mut self) {
        let handle = self.spare.pop().unwrap_or_else(|| {
            let buffer = || SocketBuffer::new(vec![0; self.buffer]);
            self.sockets.add(Socket::new(buffer(), buffer()))
        });
        let socket = self.sockets.get_mut::<Socket<'_>>(handle);
        socket.set_nagle_enabled(false);
        socket.set_congestion_control(CongestionControl::Cubic);
        socket.listen(self.task.listen).expect("the socket is closed and the port not 0");
        self.connections.push((handle, Connection::default()));
    }

    fn serve(&mut self) {
        let (sockets, spare, work) = (&mut self.sockets, &mut self.spare, self.task.work());
        self.connections.retain_mut(|(handle, connection)| {
            let socket = sockets.get_mut::<Socket<'_>>(*handle);
            connection.advance(socket, work);
            let stands = socket.state() != State::Closed;
            if !stands {
                spare.push(*handle);
            }
            stands
        });
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.serve(&mut self.sockets);
        }
    }

    fn send(&mut self) {
        let now = Instant::now();
        while self.interface.poll_egress(now, &mut self.device, &mut self.sockets)
            == PollResult::SocketStateChanged
        {}
    }
}
