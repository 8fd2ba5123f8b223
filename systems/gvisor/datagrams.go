package main

import (
	"net"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"linerate.dev/sdk"
)

// exchange returns the answer to a datagram: the same datagram, or the report of the flow.
func exchange(spec *sdk.Spec) (func(netip.AddrPort, []byte) []byte, error) {
	switch spec.Workload {
	case "rr":
		return func(_ netip.AddrPort, datagram []byte) []byte { return datagram }, nil
	case "stream":
		datagram, err := sdk.NewDatagram(spec)
		return sdk.NewReceiver(datagram).Answer, err
	}
	return nil, sdk.Unsupported("workload " + spec.Workload)
}

// receive answers the datagrams to an address, in one goroutine.
func receive(s *stack.Stack, at tcpip.FullAddress, answer func(netip.AddrPort, []byte) []byte) error {
	socket, err := gonet.DialUDP(s, &at, nil, ipv4.ProtocolNumber)
	if err != nil {
		return err
	}
	own := socket.LocalAddr().(*net.UDPAddr).AddrPort()
	go func() {
		buffer := make([]byte, sdk.LargestDatagram+1)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			peer := from.(*net.UDPAddr).AddrPort()
			if peer == own {
				continue // A forged source: the answer would arrive here again.
			}
			if answer := answer(peer, buffer[:n]); answer != nil {
				// A datagram that the stack refuses is lost, as on any path.
				_, _ = socket.WriteTo(answer, from)
			}
		}
	}()
	return nil
}
