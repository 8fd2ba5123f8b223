package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"linerate.dev/sdk"
)

const nic = 1

// listen makes a stack behind the TUN device as gVisor's own sample tun_tcp_echo does, and listens at the spec's address.
func listen(spec *sdk.Spec) (net.Listener, error) {
	name, there := spec.Options["tun"]
	if !there {
		return nil, sdk.Unsupported(`a path without a TUN device ("options.tun")`)
	}
	mtu, err := strconv.ParseUint(spec.Options["mtu"], 10, 16)
	if err != nil {
		return nil, sdk.BadSpec(`"options.mtu" must be a number of bytes`)
	}
	at, err := netip.ParseAddrPort(spec.Listen)
	if err != nil || !at.Addr().Is4() {
		return nil, sdk.BadSpec(`"listen" must be an IPv4 address and a port`)
	}
	fd, err := tun.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening the TUN device %s: %w", name, err)
	}
	link, err := fdbased.New(&fdbased.Options{FDs: []int{fd}, MTU: uint32(mtu)})
	if err != nil {
		return nil, err
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	if err := s.CreateNIC(nic, link); err != nil {
		return nil, fmt.Errorf("creating the NIC: %s", err)
	}
	address := tcpip.AddrFromSlice(at.Addr().AsSlice())
	own := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: address.WithPrefix()}
	if err := s.AddProtocolAddress(nic, own, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("adding the address: %s", err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	// TCP_NODELAY is the default of gonet's connections, as it is of package net.
	return gonet.ListenTCP(s, tcpip.FullAddress{NIC: nic, Addr: address, Port: at.Port()}, ipv4.ProtocolNumber)
}
