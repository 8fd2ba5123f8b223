package main

import (
	"fmt"
	"net/netip"
	"strconv"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"linerate.dev/sdk"
)

const nic = 1

// raise makes a stack behind the TUN device as gVisor's own sample tun_tcp_echo does. It returns the stack and the address of
// the spec in it.
func raise(spec *sdk.Spec) (*stack.Stack, tcpip.FullAddress, error) {
	refuse := func(err error) (*stack.Stack, tcpip.FullAddress, error) { return nil, tcpip.FullAddress{}, err }
	name, there := spec.Options["tun"]
	if !there {
		return refuse(sdk.Unsupported(`a path without a TUN device ("options.tun")`))
	}
	mtu, err := strconv.ParseUint(spec.Options["mtu"], 10, 16)
	if err != nil {
		return refuse(sdk.BadSpec(`"options.mtu" must be a number of bytes`))
	}
	at, err := netip.ParseAddrPort(spec.Listen)
	if err != nil || !at.Addr().Is4() {
		return refuse(sdk.BadSpec(`"listen" must be an IPv4 address and a port`))
	}
	fd, err := tun.Open(name)
	if err != nil {
		return refuse(fmt.Errorf("opening the TUN device %s: %w", name, err))
	}
	link, err := fdbased.New(&fdbased.Options{FDs: []int{fd}, MTU: uint32(mtu)})
	if err != nil {
		return refuse(err)
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	// As the kernel and the other stacks have it; gVisor's default is Reno.
	cubic := tcpip.CongestionControlOption("cubic")
	if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, &cubic); err != nil {
		return refuse(fmt.Errorf("choosing Cubic: %s", err))
	}
	if err := s.CreateNIC(nic, link); err != nil {
		return refuse(fmt.Errorf("creating the NIC: %s", err))
	}
	address := tcpip.AddrFromSlice(at.Addr().AsSlice())
	own := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: address.WithPrefix()}
	if err := s.AddProtocolAddress(nic, own, stack.AddressProperties{}); err != nil {
		return refuse(fmt.Errorf("adding the address: %s", err))
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return s, tcpip.FullAddress{NIC: nic, Addr: address, Port: at.Port()}, nil
}
