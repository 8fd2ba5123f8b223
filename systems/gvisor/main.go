// gVisor's netstack as a system of linerate (sdk/CONTRACT.md): gvisor-system SPEC.
//
//	spec -> stack.go: a TUN device, a NIC, a listener -> serve.go: a goroutine for each connection
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"linerate.dev/sdk"
)

const module = "gvisor.dev/gvisor"

func main() {
	sdk.Start(sdk.Program{
		Name:      "gvisor",
		Version:   version(),
		Roles:     []string{"server"},
		Layers:    []string{"tcp"},
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
	if spec.Role != "server" || spec.Layer != "tcp" {
		return nil, sdk.Unsupported(fmt.Sprintf("%s of layer %q", spec.Role, spec.Layer))
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
	listener, err := listen(spec)
	if err != nil {
		return nil, err
	}
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	sdk.Ready(spec.Listen)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				// A peer that vanishes ends its connection and nothing else.
				defer connection.Close()
				serve(connection)
			}()
		}
	}()
	<-terminate
	return nil, nil
}
