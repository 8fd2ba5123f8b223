// A server of HTTP/1.1 in Go. PLANT_US: microseconds of auditRequest. ALLOCATIONS: of copyHeaders.
package main

import (
	"net/http"
	"os"
	"strconv"
	"time"
)

var kept [][]byte

//go:noinline
func auditRequest(plant time.Duration) {
	for start := time.Now(); time.Since(start) < plant; {
	}
}

//go:noinline
func copyHeaders(count int) {
	all := make([][]byte, 0, count)
	for i := 0; i < count; i++ {
		all = append(all, make([]byte, 300))
	}
	kept = all
}

func number(name string) int {
	value, _ := strconv.Atoi(os.Getenv(name))
	return value
}

func main() {
	plant, allocations := time.Duration(number("PLANT_US"))*time.Microsecond, number("ALLOCATIONS")
	http.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		if plant > 0 {
			auditRequest(plant)
		}
		if allocations > 0 {
			copyHeaders(allocations)
		}
		answer.Write([]byte("hello"))
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
