// Go as a system of linerate (sdk/CONTRACT.md): go-system SPEC.
//
//	spec -> serve | client.go, both over layers.go, and with "ends" in one process; http.go; udp.go; local.go -> events
package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"linerate.dev/sdk"
)

func main() {
	sdk.Start(sdk.Program{
		Name:      "go",
		Version:   version(),
		Roles:     []string{"client", "server"},
		Layers:    []string{"http", "none", "tcp", "tls", "udp", "websocket", "wss"},
		Workloads: []string{"crr", "dispatch", "fanout", "rr", "stream"},
		Options:   []string{"server", "websocket-buffer"},
		Ends:      []string{"one-loop"},
		Run:       run,
	})
}

var tasks = map[string]func(*sdk.Spec) (*sdk.Done, error){
	"server/http/rr":          serveHTTP,
	"server/http/crr":         serveHTTP,
	"server/tcp/rr":           serve,
	"server/tcp/crr":          serve,
	"server/tcp/fanout":       serve,
	"server/tcp/stream":       serve,
	"server/tls/rr":           serve,
	"server/tls/stream":       serve,
	"server/websocket/rr":     serve,
	"server/websocket/stream": serve,
	"server/wss/rr":           serve,
	"server/wss/stream":       serve,
	"server/udp/stream":       serveDatagrams,

	"client/tcp/rr":           rr,
	"client/tcp/crr":          crr,
	"client/tcp/fanout":       fanout,
	"client/tcp/stream":       stream,
	"client/tls/rr":           rr,
	"client/tls/stream":       stream,
	"client/websocket/rr":     rr,
	"client/websocket/stream": stream,
	"client/wss/rr":           rr,
	"client/wss/stream":       stream,
	"client/udp/stream":       streamDatagrams,
	"client/none/dispatch":    dispatch,
}

// Clients that are client and server in one process.
var inOneLoop = map[string]func(*sdk.Spec) (*sdk.Done, error){
	"client/tcp/rr":     rr,
	"client/tcp/stream": stream,
	"client/http/rr":    rr,
}

// version returns Go's, and that of the WebSocket library as linked.
func version() string {
	version := strings.TrimPrefix(runtime.Version(), "go")
	if build, there := debug.ReadBuildInfo(); there {
		for _, dependency := range build.Deps {
			if dependency.Path == "github.com/gorilla/websocket" {
				version += " (gorilla/websocket " + strings.TrimPrefix(dependency.Version, "v") + ")"
			}
		}
	}
	return version
}

func run(spec *sdk.Spec) (*sdk.Done, error) {
	known := tasks
	if spec.OneLoop() {
		known = inOneLoop
	}
	task, there := known[spec.Role+"/"+spec.Layer+"/"+spec.Workload]
	if !there {
		return nil, sdk.Unsupported(fmt.Sprintf("%s of layer %q and workload %q", spec.Role, spec.Layer, spec.Workload))
	}
	if spec.Rate != 0 {
		return nil, sdk.Unsupported(`an open loop ("rate")`)
	}
	// Threads that run Go code at the same time. The runtime has others, for blocking system calls and garbage collection.
	runtime.GOMAXPROCS(spec.Threads)
	if spec.OneLoop() {
		handle, err := handler(spec)
		if err == nil {
			err = sdk.ServeBeside(spec, handle)
		}
		if err != nil {
			return nil, err
		}
	}
	return task(spec)
}
