// KCP by kcp-go as a system of linerate (sdk/CONTRACT.md): kcp-go SPEC. No error correction, no encryption: plain KCP.
//
//	spec -> setting -> serve | drive (stream.go) -> events
package main

import (
	"fmt"
	"runtime"
	"strconv"

	"github.com/xtaci/kcp-go"
	"linerate.dev/sdk"
)

// Version of the Debian package, set by the build: kcp-go has no constant for it.
var version string

func main() {
	sdk.Start(sdk.Program{
		Name:      "kcp-go",
		Version:   version,
		Roles:     []string{"client", "server"},
		Layers:    []string{"kcp"},
		Workloads: []string{"stream"},
		Run:       run,
	})
}

func run(spec *sdk.Spec) (*sdk.Done, error) {
	if spec.Layer != "kcp" || spec.Workload != "stream" || spec.Rate != 0 {
		return nil, sdk.Unsupported(fmt.Sprintf("%s of layer %q and workload %q at rate %v", spec.Role, spec.Layer, spec.Workload, spec.Rate))
	}
	s, err := newSetting(spec)
	if err != nil {
		return nil, err
	}
	runtime.GOMAXPROCS(spec.Threads)
	switch spec.Role {
	case "server":
		return s.serve(spec)
	case "client":
		return s.drive(spec)
	}
	return nil, sdk.Unsupported("role " + spec.Role)
}

// setting is what both ends share.
type setting struct {
	size, mtu, window, interval, noDelay, resend, nc int
	content                                          *sdk.Content
}

func newSetting(spec *sdk.Spec) (*setting, error) {
	if spec.Size < 1 || spec.Size > 65_536 {
		return nil, sdk.BadSpec(`"size" must be 1 to 65536 bytes`)
	}
	switch direction := spec.Options["direction"]; direction {
	case "client-writes":
	case "client-reads", "both":
		return nil, sdk.Unsupported("KCP in the direction " + direction)
	default:
		return nil, sdk.BadSpec(`"options.direction" must be client-writes`)
	}
	s := &setting{size: spec.Size, content: sdk.NewContent(spec.Size)}
	for _, option := range []struct {
		name                 string
		otherwise, low, high int
		value                *int
	}{
		{"mtu", 1_400, 50, 1_500, &s.mtu}, // kcp-go's own limit
		{"window", 1_024, 1, 65_535, &s.window},
		{"interval_us", 10_000, 1, 5_000_000, &s.interval},
		{"nodelay", 1, 0, 1, &s.noDelay},
		{"resend", 2, 0, 1_000, &s.resend},
		{"nc", 1, 0, 1, &s.nc},
	} {
		*option.value = option.otherwise
		text, there := spec.Options[option.name]
		if !there {
			continue
		}
		value, err := strconv.Atoi(text)
		if err != nil || value < option.low || value > option.high {
			return nil, sdk.BadSpec(fmt.Sprintf(`"options.%s" must be %d to %d, not %s`, option.name, option.low, option.high, text))
		}
		*option.value = value
	}
	// KCP raises a shorter interval to 10 ms.
	if s.interval < 10_000 {
		return nil, sdk.Unsupported(fmt.Sprintf("an interval of %d us: kcp-go supports none below 10000", s.interval))
	}
	s.interval /= 1_000
	return s, nil
}

// apply configures a session.
func (s *setting) apply(session *kcp.UDPSession) {
	session.SetStreamMode(true)
	session.SetMtu(s.mtu)
	session.SetWindowSize(s.window, s.window)
	session.SetNoDelay(s.noDelay, s.interval, s.resend, s.nc)
	// Acknowledgements are sent when segments arrive, as in the other systems, and not at the interval.
	session.SetACKNoDelay(true)
}
