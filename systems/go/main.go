// Go as a system of linerate (sdk/CONTRACT.md): go-system SPEC.
//
//	spec -> serve.go | client.go | stream.go | udp.go | local.go | conversation.go over layers.go -> events
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
		Workloads: []string{"churn", "crr", "dispatch", "fanout", "http", "rr", "stream", "timers"},
		Run:       run,
	})
}

var tasks = map[string]func(*sdk.Spec) (*sdk.Done, error){
	"server/http/http":     serveHTTP,
	"server/http/crr":      serveHTTP,
	"server/tcp/rr":        serveEcho,
	"server/tcp/churn":     serveEcho,
	"server/tcp/fanout":    serveEcho,
	"server/tcp/stream":    serveStream,
	"server/udp/stream":    serveDatagrams,
	"client/tcp/rr":        rr,
	"client/tcp/churn":     churn,
	"client/tcp/fanout":    fanout,
	"client/tcp/stream":    stream,
	"client/udp/stream":    flood,
	"client/none/dispatch": dispatch,
	"client/none/timers":   timers,

	"server/tcp/counted stream": serveChannels,
	"client/tcp/counted stream": driveChannels,
	"server/tls/rr":             serveChannels,
	"client/tls/rr":             driveChannels,
	"server/tls/stream":         serveChannels,
	"client/tls/stream":         driveChannels,
	"server/websocket/rr":       serveChannels,
	"client/websocket/rr":       driveChannels,
	"server/websocket/stream":   serveChannels,
	"client/websocket/stream":   driveChannels,
	"server/wss/rr":             serveChannels,
	"client/wss/rr":             driveChannels,
	"server/wss/stream":         serveChannels,
	"client/wss/stream":         driveChannels,
}

// version is Go's, and that of the WebSocket library as it was linked.
func version() string {
	told := strings.TrimPrefix(runtime.Version(), "go")
	if build, there := debug.ReadBuildInfo(); there {
		for _, dependency := range build.Deps {
			if dependency.Path == "github.com/gorilla/websocket" {
				told += " (gorilla/websocket " + strings.TrimPrefix(dependency.Version, "v") + ")"
			}
		}
	}
	return told
}

func run(spec *sdk.Spec) (*sdk.Done, error) {
	workload := spec.Workload
	if _, counted := spec.Options["transfers"]; counted && spec.Layer == "tcp" && workload == "stream" {
		workload = "counted stream"
	}
	task, there := tasks[spec.Role+"/"+spec.Layer+"/"+workload]
	if !there {
		return nil, sdk.Unsupported(fmt.Sprintf("%s of layer %q and workload %q", spec.Role, spec.Layer, spec.Workload))
	}
	if spec.Rate != 0 {
		return nil, sdk.Unsupported(`an open loop ("rate")`)
	}
	// Threads that run Go code at the same time; the runtime has others, for system calls that block and for its collector.
	runtime.GOMAXPROCS(spec.Threads)
	return task(spec)
}
