package reference

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"floodproof/reference/queue"
)

// The places of a described provider, by their index.
const (
	placeID = iota
	placeType
	placeResource
	placeVersion
	placeCount
)

// customPlaces is where the parts of an event stand: each in a header, or at the end of a path in the body, or nowhere.
type customPlaces struct {
	headers [placeCount]string
	paths   [placeCount][]string
}

func newCustomPlaces(c *CustomScheme) (p customPlaces, err error) {
	for i, place := range [placeCount]CustomPlace{c.ID, c.Type, c.Resource, c.Version} {
		switch {
		case place.Header != "" && place.Pointer != "":
			return p, fmt.Errorf("place %+v is two places", place)
		case place.Pointer != "" && place.Pointer[0] != '/':
			return p, fmt.Errorf("pointer %q must begin with /", place.Pointer)
		case place.Pointer != "":
			for token := range strings.SplitSeq(place.Pointer[1:], "/") {
				p.paths[i] = append(p.paths[i], strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
			}
		default:
			p.headers[i] = http.CanonicalHeaderKey(place.Header)
		}
	}
	if c.ID == (CustomPlace{}) || c.Type == (CustomPlace{}) {
		err = errors.New("say in ID and Type where an event's id and type stand")
	}
	return p, err
}

func (h *customHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	var found [placeCount]string
	var alive [placeCount]bool
	for i, path := range h.places.paths {
		alive[i] = path != nil
		if name := h.places.headers[i]; name != "" {
			found[i] = onlyHeader(d.header, name)
		}
	}
	if b := c.peek(); b != '{' && b != '[' {
		return nil, errMalformed
	}
	h.places.walk(&c, 0, alive, &found)
	job := queue.Job{EventID: found[placeID], Type: found[placeType], Payload: d.body, Version: customVersion(found[placeVersion])}
	switch {
	case !c.done():
		return nil, errMalformed
	case !usable(job.EventID):
		return nil, errNoID
	case !usable(job.Type):
		return nil, errNoType
	}
	job.Resource = usableOr(found[placeResource], "")
	return []queue.Job{job}, nil
}

// customVersion reads a whole number or a point in time, 0 for anything else.
func customVersion(text string) int64 {
	if n, ok := decimal(text); ok {
		return n
	}
	return parseMillis(text)
}

// walk reads the value at the cursor, which lies depth steps along the paths that are alive. Of a member that is there twice the last counts.
func (p *customPlaces) walk(c *jsonCursor, depth int, alive [placeCount]bool, found *[placeCount]string) {
	if c.peek() == '[' {
		for i := range c.items {
			p.step(c, strconv.Itoa(i), depth, alive, found)
		}
		return
	}
	for key := range c.members {
		p.step(c, string(key), depth, alive, found)
	}
}

// step consumes the member or item of that name if a path leads to it.
func (p *customPlaces) step(c *jsonCursor, token string, depth int, alive [placeCount]bool, found *[placeCount]string) {
	ends, goesOn := [placeCount]bool{}, false
	for i, path := range p.paths {
		if alive[i] = alive[i] && path[depth] == token; alive[i] {
			ends[i] = len(path) == depth+1
			goesOn = goesOn || !ends[i]
		}
	}
	if ends != [placeCount]bool{} {
		text := c.scalar()
		for i, here := range ends {
			if here {
				found[i] = text
			}
		}
		return
	}
	if goesOn {
		p.walk(c, depth+1, alive, found)
	}
}
