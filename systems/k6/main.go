// k6 as its own program is: the command, and nothing else.
package main

import "go.k6.io/k6/cmd"

func main() {
	cmd.Execute()
}
