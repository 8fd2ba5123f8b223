// gVisor's netstack as a system of linerate (sdk/CONTRACT.md): gvisor-system SPEC.
//
//	spec -> stack.go: a TUN device, a NIC -> serve.go: a listener, a goroutine for each connection
//	                                      or datagrams.go: a socket, one goroutine
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
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
		Workloads: []string{"churn", "fanout", "rr", "stream"},
		Run:       run,
	})
}

// The version that was linked; the module has no constant for it.
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
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	if err := serve(own, address); err != nil {
		return nil, err
	}
	sdk.Ready(spec.Listen)
	<-terminate
	return nil, nil
}

// start begins to serve an address of a stack.
type start func(*stack.Stack, tcpip.FullAddress) error

// service is what is done by layer and workload.
func service(spec *sdk.Spec) (start, error) {
	switch spec.Layer {
	case "tcp":
		serve, err := conversation(spec)
		return func(s *stack.Stack, at tcpip.FullAddress) error { return accept(s, at, serve) }, err
	case "udp":
		answer, err := exchange(spec)
		return func(s *stack.Stack, at tcpip.FullAddress) error { return receive(s, at, answer) }, err
	}
	return nil, sdk.Unsupported(fmt.Sprintf("layer %q", spec.Layer))
}
