package chaos

// NetKinds are the faults of the network, for the tests.
func NetKinds() []Kind { return netKinds() }
