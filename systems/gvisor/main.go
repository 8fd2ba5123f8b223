// gVisor's netstack as a system of linerate (sdk/CONTRACT.md): gvisor-system SPEC.
//
//	spec -> stack.go: a TUN device, a NIC -> a listener, a goroutine for each connection
//	                                      or datagrams.go: a socket, one goroutine
package main

import (
	"fmt"
	"net"
	"runtime"
	"runtime/debug"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"linerate.dev/sdk"
)

const module = "gvisor.dev/gvisor"

func main() {
	sdk.Start(sdk.Program{
		Name:      "gvisor",
		Version:   version(),
		Roles:     []string{"server"},
		Layers:    []string{"tcp", "udp"},
		Workloads: []string{"crr", "fanout", "rr", "stream"},
		Run:       run,
	})
}

// version returns the linked version; the module has no constant for it.
func version() string {
	if build, there := debug.ReadBuildInfo(); there {
		for _, dependency := range build.Deps {
			if dependency.Path == module {
				return dependency.Version
			}
		}
	}
	return "unknown"
}

func run(spec *sdk.Spec) (*sdk.Done, error) {
	if spec.Role != "server" {
		return nil, sdk.Unsupported("role " + spec.Role)
	}
	serve, err := service(spec)
	if err != nil {
		return nil, err
	}
	if spec.Options["runtime"] != "multi" && spec.Threads != 1 {
		return nil, sdk.Unsupported("several threads on a single-threaded runtime")
	}
	// Threads that run Go code at the same time.
	runtime.GOMAXPROCS(spec.Threads)
	own, address, err := raise(spec)
	if err != nil {
		return nil, err
	}
	terminated := sdk.Terminated()
	if err := serve(own, address); err != nil {
		return nil, err
	}
	sdk.Ready(spec.Listen)
	<-terminated
	return nil, nil
}

// start starts to serve an address of a stack.
type start func(*stack.Stack, tcpip.FullAddress) error

// service returns the server of the layer and workload.
func service(spec *sdk.Spec) (start, error) {
	switch spec.Layer {
	case "tcp":
		service, err := sdk.NewService(spec)
		return func(s *stack.Stack, at tcpip.FullAddress) error { return accept(s, at, service) }, err
	case "udp":
		answer, err := exchange(spec)
		return func(s *stack.Stack, at tcpip.FullAddress) error { return receive(s, at, answer) }, err
	}
	return nil, sdk.Unsupported(fmt.Sprintf("layer %q", spec.Layer))
}

func accept(s *stack.Stack, at tcpip.FullAddress, service *sdk.Service) error {
	// TCP_NODELAY is the default of gonet's connections, as of package net's.
	listener, err := gonet.ListenTCP(s, at, ipv4.ProtocolNumber)
	if err == nil {
		go sdk.Accept(listener, func(connection net.Conn) { _ = service.Serve(service.Channel(connection)) })
	}
	return err
}
