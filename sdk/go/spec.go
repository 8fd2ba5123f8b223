// Package sdk is what a Go program needs to become a system of linerate (sdk/CONTRACT.md, contract 1): the spec, the
// events, the clock, histograms and the content. Only the standard library.
//
//	os.Args[1] -> Start -> Spec -> your program -> Tally per goroutine -> Done -> JSON lines on stdout
package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// Contract is the version that this package speaks.
const Contract = 1

// Spec is the task of one process. Absent fields are zero, but for those that have a default.
type Spec struct {
	Contract    int               `json:"contract"`
	Role        string            `json:"role"`
	Layer       string            `json:"layer"`
	Workload    string            `json:"workload"`
	Listen      string            `json:"listen"`
	Connect     string            `json:"connect"`
	Sources     []string          `json:"sources"`
	Connections int               `json:"connections"`
	Threads     int               `json:"threads"`
	Operations  uint64            `json:"operations"`
	Bytes       uint64            `json:"bytes"`
	DurationNs  uint64            `json:"duration_ns"`
	TimeoutNs   uint64            `json:"timeout_ns"`
	Size        int               `json:"size"`
	Rate        float64           `json:"rate"`
	Options     map[string]string `json:"options"`
	TLS         TLS               `json:"tls"`
}

// TLS has PEM texts: a server's certificate and key, a client's authority and the name that it expects.
type TLS struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	Authority   string `json:"authority"`
	Name        string `json:"name"`
}

// Timeout is how long one operation may take.
func (s *Spec) Timeout() time.Duration { return time.Duration(s.TimeoutNs) }

// Unsupported ends the program with exit status 127; return it before anything is opened.
type Unsupported string

func (u Unsupported) Error() string { return "unsupported: " + string(u) }

// BadSpec ends the program with exit status 2.
type BadSpec string

func (b BadSpec) Error() string { return "bad spec: " + string(b) }

// Program is what a program can do.
type Program struct {
	Name string
	// Of the library under test, from the library itself.
	Version                  string
	Roles, Layers, Workloads []string
	// Runs a task; a client's result is printed, a server's is nil.
	Run func(*Spec) (*Done, error)
}

// Start is the whole of main: reads the spec, answers describe, runs the rest, and ends the process.
func Start(program Program) {
	os.Exit(start(program, os.Args[1:]))
}

func start(program Program, arguments []string) int {
	err := func() error {
		if len(arguments) != 1 {
			return BadSpec("expected one argument, the spec as JSON (sdk/CONTRACT.md)")
		}
		spec, err := Parse(arguments[0])
		if err != nil {
			return err
		}
		if spec.Role == "describe" {
			emit(map[string]any{
				"event": "describe", "name": program.Name, "version": program.Version,
				"roles": program.Roles, "layers": program.Layers, "workloads": program.Workloads,
			})
			return nil
		}
		done, err := program.Run(spec)
		if err == nil && done != nil {
			done.Event = "done"
			emit(done)
		}
		return err
	}()
	var bad BadSpec
	var unsupported Unsupported
	switch {
	case err == nil:
		return 0
	case errors.As(err, &unsupported):
		fmt.Fprintf(os.Stderr, "%s: %v\n", program.Name, err)
		return 127
	case errors.As(err, &bad):
		fmt.Fprintf(os.Stderr, "%s: %v\n", program.Name, err)
		return 2
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", program.Name, err)
		return 1
	}
}

// Parse reads a spec, and refuses one of another contract.
func Parse(text string) (*Spec, error) {
	spec := &Spec{Connections: 1, Threads: 1, TimeoutNs: 10_000_000_000}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := decoder.Decode(spec); err != nil {
		return nil, BadSpec("the spec is not valid: " + err.Error())
	}
	if spec.Contract != Contract {
		return nil, BadSpec(fmt.Sprintf("the spec speaks contract %d, this program %d", spec.Contract, Contract))
	}
	if spec.Connections < 1 || spec.Threads < 1 || spec.TimeoutNs < 1 || spec.Size < 0 {
		return nil, BadSpec(`"connections", "threads" and "timeout_ns" must be above 0, "size" not below`)
	}
	return spec, nil
}

// Ready says that a server accepts connections at this address.
func Ready(address string) {
	emit(map[string]any{"event": "ready", "address": address})
}

// Each event is one write of one line, so there is nothing to flush.
func emit(event any) {
	line, err := json.Marshal(event)
	if err != nil {
		panic(err) // events are made of numbers, strings and lists
	}
	// A reader that went away is no reason to fail.
	_, _ = os.Stdout.Write(append(line, '\n'))
}
