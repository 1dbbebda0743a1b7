package redisstreams

import (
	"context"
	_ "embed" // for the scripts
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// The sources of the scripts. Each runs behind the first three, and those of the history behind luaDescribe too.
var (
	//go:embed lua/common.lua
	luaCommon string
	//go:embed lua/rows.lua
	luaRows string
	//go:embed lua/advance.lua
	luaAdvance string
	//go:embed lua/enqueue.lua
	luaEnqueue string
	//go:embed lua/claim.lua
	luaClaim string
	//go:embed lua/settle.lua
	luaSettle string
	//go:embed lua/depth.lua
	luaDepth string
	//go:embed lua/letters.lua
	luaLetters string
	//go:embed lua/redrive.lua
	luaRedrive string
	//go:embed lua/drop.lua
	luaDrop string
	//go:embed lua/replay.lua
	luaReplay string
	//go:embed lua/describe.lua
	luaDescribe string
	//go:embed lua/event.lua
	luaEvent string
	//go:embed lua/list.lua
	luaList string
	//go:embed lua/leased.lua
	luaLeased string
	//go:embed lua/sweep.lua
	luaSweep string
)

// scripts are all changes that this queue makes, and the reads that have to see one moment. The server knows them by their hash; where it has forgotten
// them (a restart, SCRIPT FLUSH) the source is sent again.
type scripts struct {
	enqueue, claim, settle, depth, letters, redrive, drop, replay *redis.Script
	event, list, leased, sweep                                    *redis.Script
}

func newScripts() scripts {
	script := func(source string) *redis.Script { return redis.NewScript(luaCommon + luaRows + luaAdvance + source) }
	return scripts{
		enqueue: script(luaEnqueue), claim: script(luaClaim), settle: script(luaSettle),
		depth: script(luaDepth), letters: script(luaLetters), redrive: script(luaRedrive), drop: script(luaDrop), replay: script(luaReplay),
		event: script(luaDescribe + luaEvent), list: script(luaDescribe + luaList), leased: script(luaDescribe + luaLeased), sweep: script(luaSweep),
	}
}

// run runs a script on the queue's keys and returns its answer. All scripts are told how long a finished event stays known, and is kept, before their own arguments.
//
// Note: nothing is sent twice when a connection breaks, although the client could: a settlement that was done and whose answer was lost would be refused
// the second time, and a second claim would take other jobs.
func (q *Queue) run(ctx context.Context, s *redis.Script, args ...any) (any, error) {
	return q.send(ctx, s, append([]any{q.opts.windows()}, args...))
}

// isReply reports whether an error is the server's answer, and not a failure to get one.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// unexpected is the error for an answer that no script of ours gives.
func unexpected(answer any) error {
	return fmt.Errorf("the server gave the unexpected answer %v (%T)", answer, answer)
}

// array returns an answer that must be an array of at least that length.
func array(answer any, length int) ([]any, error) {
	a, ok := answer.([]any)
	if !ok || len(a) < length {
		return nil, unexpected(answer)
	}
	return a, nil
}

// integer reads a number, which Redis may give as a text.
func integer(answer any) (int64, error) {
	switch v := answer.(type) {
	case int64:
		return v, nil
	case string:
		return strconv.ParseInt(v, 10, 64)
	}
	return 0, unexpected(answer)
}

// instant says when by our clock a script ran that was sent at one moment and answered at another, and said what time its server has. Where both clocks
// agree it is the server's time, as exact as its clock counts; otherwise it is when the script was sent, which is the safe side.
func instant(sent, answered time.Time, seconds, micros any) (time.Time, error) {
	s, err := integer(seconds)
	if err != nil {
		return sent, err
	}
	us, err := integer(micros)
	if err != nil {
		return sent, err
	}
	server := time.UnixMilli(s*1000 + us/1000) // the scripts count in milliseconds
	if server.Before(sent.Truncate(time.Millisecond)) || server.After(answered) {
		return sent, nil
	}
	return server, nil
}
