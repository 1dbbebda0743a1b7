// Package node is one process of the pipeline as a run supervises it: a receiver or a worker on any backend, what it is told, and what its supervisor can do to it from
// inside. floodproof-node is nothing else; floodproof itself can be one too, where that program is not there.
//
// Note: one program for everything was simpler, and a receiver of it had 44 MB at the end of a day of a million, of which 30 were pages of a file of 95 MB: brokers,
// plots and Docker's client, which a receiver never uses.
package node
