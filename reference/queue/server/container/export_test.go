package container

import "testing"

// KillHelper ends the helper as nothing can catch it, and returns when it is gone.
func (s *Server) KillHelper(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
}
