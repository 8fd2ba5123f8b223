// Go as a system of linerate (sdk/CONTRACT.md): go-system SPEC.
//
//	spec -> serve.go | client.go | stream.go | udp.go | local.go -> events
package main

import (
	"fmt"
	"runtime"
	"strings"

	"linerate.dev/sdk"
)

func main() {
	sdk.Start(sdk.Program{
		Name:      "go",
		Version:   strings.TrimPrefix(runtime.Version(), "go"),
		Roles:     []string{"client", "server"},
		Layers:    []string{"http", "none", "tcp", "udp"},
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
}

func run(spec *sdk.Spec) (*sdk.Done, error) {
	task, there := tasks[spec.Role+"/"+spec.Layer+"/"+spec.Workload]
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
