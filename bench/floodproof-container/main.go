// Command floodproof-container runs one broker in a container for floodproof, and removes it when floodproof has no use for it any more or is dead. It is not meant to be
// called by hand, but can be: "floodproof-container check" says what Docker answers, "floodproof-container remove RUN" removes what a run left behind.
package main

import (
	"os"

	"floodproof/reference/queue/server/container/child"
)

func main() { os.Exit(child.Main(os.Args[1:])) }
