package cutfs

// Hangup ends the connection to the child without a word, as the death of the parent does.
func (f *FS) Hangup() error { return f.conn.Close() }

// Ended is closed when the child is gone.
func (f *FS) Ended() <-chan struct{} { return f.ended }

// Backing is the temporary directory of the child.
func (f *FS) Backing() string { return f.backing }
