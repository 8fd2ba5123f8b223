//! smoltcp as a system of linerate, in its own loop on one thread: no runtime, no channel, no lock.
//!
//! ```text
//! device.rs: packets of the TUN device -> poll.rs: a socket for each SYN, smoltcp's poll
//!         -> connection.rs: content in the sockets' own buffers (udp.rs: datagrams)
//!         -> smoltcp's poll -> device.rs
//! ```
//!
//! Without options it is driven as in smoltcp's examples: one packet per read and write, all checksums
//! here, blocking when there is none. `options`: `offload` (`yes`: up to 64 KiB per packet, segmented and
//! checksummed by the kernel), `spin_us` (block only after this time without a packet), `buffer` (bytes per
//! connection and direction).

mod connection;
mod device;
mod udp;

use connection::Connection;
use device::TunDevice;
use linerate_sdk::netstack::{System, Task};
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::phy;
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

const SYSTEM: System =
    System { name: "smoltcp", version: env!("SMOLTCP_VERSION"), options: &["offload", "spin_us", "buffer"] };
/// Packets received before connections are served: too few to fill the receive buffer of one connection.
const BATCH: usize = 64;
/// Bytes per connection and direction, as in netstack-smoltcp.
const BUFFER: usize = 0x3FFF * 20;

fn main() {
    linerate_sdk::netstack::run_loop(SYSTEM, |task| {
        let offload = task.option("offload") == Some("yes");
        let spin = Duration::from_micros(number(task, "spin_us", 0)?);
        let buffer = number(task, "buffer", BUFFER as u64)? as usize;
        Stack::new(task, offload, spin, buffer)?.run()
    });
}

/// The option with this name, or `default`.
///
/// # Errors
/// The option is no number.
fn number(task: &Task, name: &str, default: u64) -> io::Result<u64> {
    task.option(name).map_or(Ok(default), |text| {
        text.parse().map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, format!("option {name}: {e}")))
    })
}

struct Stack<'a> {
    task: &'a Task,
    device: TunDevice,
    interface: Interface,
    sockets: SocketSet<'static>,
    connections: Vec<(SocketHandle, Connection)>,
    /// On layer `udp`.
    datagrams: Option<udp::Server>,
    /// Closed sockets, whose buffers are reused: zeroing new ones takes longer than a short connection.
    spare: Vec<SocketHandle>,
    buffer: usize,
    spin: Duration,
}

impl<'a> Stack<'a> {
    fn new(task: &'a Task, offload: bool, spin: Duration, buffer: usize) -> io::Result<Self> {
        let mut device = TunDevice::open(&task.tun, task.mtu, offload)?;
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, Instant::now());
        let address = task.listen.ip().into();
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(address, 24)).expect("it is the first one")
        });
        // All peers are behind the same device, so any gateway will do.
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
            buffer,
            spin,
        })
    }

    fn run(mut self) -> io::Result<()> {
        self.task.ready();
        let mut last = std::time::Instant::now();
        loop {
            let received = self.receive()?;
            self.serve();
            self.send();
            if received {
                last = std::time::Instant::now();
            } else if last.elapsed() < self.spin {
                // The client may share this CPU.
                std::thread::yield_now();
            } else {
                let delay = self.interface.poll_delay(Instant::now(), &self.sockets);
                match phy::wait(self.device.as_raw_fd(), delay) {
                    // A signal, which another thread handles.
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    outcome => outcome?,
                }
            }
        }
    }

    /// Passes waiting packets to the stack; false if there were none.
    fn receive(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        self.interface.poll_maintenance(now);
        for received in 0..BATCH {
            if !self.device.read()? {
                return Ok(received > 0);
            }
            if self.device.has_first_packet_for(self.task.listen) {
                self.listen();
            }
            let result = self.interface.poll_ingress_single(now, &mut self.device, &mut self.sockets);
            debug_assert!(result != PollIngressSingleResult::None, "a packet was there");
        }
        Ok(true)
    }

    /// Adds a listening socket, which takes one connection.
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
        let (sockets, spare, service) = (&mut self.sockets, &mut self.spare, self.task.service());
        self.connections.retain_mut(|(handle, connection)| {
            let socket = sockets.get_mut::<Socket<'_>>(*handle);
            connection.advance(socket, service);
            let is_open = socket.state() != State::Closed;
            if !is_open {
                spare.push(*handle);
            }
            is_open
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
