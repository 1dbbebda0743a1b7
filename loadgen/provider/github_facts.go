package provider

import (
	"strconv"
	"time"
)

// The roles that a person has in an activity, as the templates name them.
var roles = []string{"sender", "author", "assignee", "reviewer", "repo.owner", "fork.owner"}

// person is a GitHub account.
type person struct {
	login       []byte
	id          uint64
	first, last name
}

// repository is a repository of some account.
type repository struct {
	name, full, created []byte
	id, born            uint64
}

// activity is what one GitHub event shows. It is reused; draw sets every field.
type activity struct {
	e    Event
	mem  arena
	kind int
	// at is the commit that is being rendered, of commits.
	at, commits int
	people      [6]person
	// repos are the repository and the fork that a pull request comes from.
	repos              [2]repository
	now, opened, after []byte
	unix               uint64
}

// draw fills the activity: a few hundred people and (for most kinds) a few hundred repositories, of which the resource's key chooses one, and the event's key who
// acts.
func (a *activity) draw(e Event) {
	k := e.ResourceDraw
	a.e, a.mem, a.at = e, a.mem[:0], 0
	a.kind = weighted(githubKinds, draw(k, 1))
	a.commits = int(among(draw(e.Draw, 3)%12/4, 1, 3))
	repo := draw(k, 4) % 480
	if a.ownsRepository() {
		repo = draw(e.ResourceKey, 4)
	}
	a.person(4, draw(repo, 5)%160)
	a.person(1, draw(k, 6)%900)
	a.person(5, draw(k, 6)%900)
	a.person(0, draw(e.Draw, 7)%900)
	a.person(2, draw(k, 8)%900)
	a.person(3, draw(k, 9)%900)
	a.repository(0, repo, a.people[4].login)
	a.repository(1, repo, a.people[5].login)
	a.repos[1].id = among(draw(a.people[5].id, repo), 700_000_000, 999_000_000)
	now := shown(e)
	a.unix = uint64(now.Unix())
	opened := now
	if e.Version > 1 {
		opened = now.Truncate(24 * time.Hour).Add(-time.Duration(draw(k, 10)%(9*86_400)) * time.Second)
	}
	a.now, a.opened = a.time(now), a.time(opened)
	start := len(a.mem)
	a.mem = appendHex(a.mem, draw(e.Key, 11), 40)
	a.after = a.mem.since(start)
}

// ownsRepository reports whether the repository itself is the resource: what is pushed to or starred. It is then one that no other resource has.
func (a *activity) ownsRepository() bool {
	body := githubKinds[a.kind].body
	return body == "push" || body == "star"
}

// time renders t as GitHub does.
func (a *activity) time(t time.Time) []byte {
	start := len(a.mem)
	a.mem = t.UTC().AppendFormat(a.mem, time.RFC3339)
	return a.mem.since(start)
}

// person makes the numbered account the holder of a role.
func (a *activity) person(role int, number uint64) {
	r := draw(number, 1000)
	p := person{id: among(draw(r, 1), 90_000, 219_000_000), first: pick(givenNames, draw(r, 2)), last: pick(familyNames, draw(r, 3))}
	start := len(a.mem)
	switch r % 4 {
	case 0:
		a.mem = append(append(append(a.mem, p.first.plain[0]), p.last.plain[:3]...), p.first.plain[1:3]...)
		a.mem = strconv.AppendUint(a.mem, r>>8%100, 10)
	case 1:
		a.mem = append(append(append(a.mem, p.first.plain...), '-'), p.last.plain[0])
	case 2:
		a.mem = strconv.AppendUint(append(a.mem, p.first.plain...), r>>8%1000, 10)
	default:
		a.mem = append(append(a.mem, p.first.plain[0]), p.last.plain...)
	}
	p.login = a.mem.since(start)
	a.people[role] = p
}

// repository fills a.repos[i] with the numbered repository of an owner.
func (a *activity) repository(i int, number uint64, owner []byte) {
	r := draw(number, 1001)
	born := time.Date(2015+int(r%11), time.Month(1+r>>8%12), 1+int(r>>16%28), int(r>>24%24), int(r>>32%60), int(r>>40%60), 0, time.UTC)
	repo := repository{id: among(draw(r, 1), 20_000_000, 690_000_000), born: uint64(born.Unix())}
	repo.created = a.time(born)
	start := len(a.mem)
	a.mem = append(append(a.mem, owner...), '/')
	a.mem = append(append(append(a.mem, pick(repoWords, draw(r, 2))...), '-'), pick(repoKinds, draw(r, 3))...)
	if a.ownsRepository() {
		repo.id = resourceID(draw(r, 1))
		a.mem = strconv.AppendUint(append(a.mem, '-'), draw(r, 4)%10_000, 10)
	}
	repo.full = a.mem.since(start)
	repo.name = repo.full[len(owner)+1:]
	a.repos[i] = repo
}

// appendNode appends a global node id: a prefix that says what it is, and an opaque rest.
func appendNode(dst []byte, prefix string, id uint64) []byte {
	return appendBase62(append(dst, prefix...), draw(id, 1), 8)
}

// appendProse appends one to most sentences.
func appendProse(dst []byte, key, most uint64) []byte {
	for i := range among(draw(key, 0), 1, most) {
		if i > 0 {
			dst = append(dst, pick([]string{" ", " ", `\n\n`, `\r\n`}, draw(key, 100+i))...)
		}
		dst = append(dst, pick(sentences, draw(key, 1+i))...)
	}
	return dst
}
