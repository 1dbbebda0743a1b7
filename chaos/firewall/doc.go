// Package firewall parts two processes of one machine as a firewall or a dead switch parts two machines: the kernel throws their packets away, or answers them with a reset, without either
// of them knowing. A proxy cannot do that: its two ends are connections that the kernel keeps acknowledging, whatever the proxy does with the bytes.
//
//	r := firewall.Rule{Chain: "floodproof-1", Port: 6379, Direction: proxy.Up}
//	err := r.Put(ctx)
//	... nothing reaches port 6379 ...
//	n, err := r.Packets(ctx)  // so many were kept from it
//	err = r.Remove(ctx)
//
// # What is touched
//
// A rule is a chain of its own in the filter table of iptables(8), and one jump to it from INPUT for packets of the loopback interface, over IPv4. Both are put in place by one transaction
// (iptables-restore(8) with --noflush), and taken away by one. Nothing of another chain is changed, and only packets to or from the one port are decided on. It needs root
// (CAP_NET_ADMIN), the program, and a kernel with netfilter: [Available] says what is missing.
//
// A rule outlives the process that has put it in place. Whoever does that tells somebody who survives him the command of [Rule.Undo].
//
// Note: network namespaces with a pair of virtual interfaces were the alternative. Every process of a pipeline, and the one that sends the load, would have to be started in one of its own, with
// addresses, routes and an open door for whoever watches; the packets would be lost in the same places as with a rule.
package firewall
