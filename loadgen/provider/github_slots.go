package provider

import (
	"slices"
	"strconv"
	"strings"
)

// activitySlot finds the slot of a name: a fact, a member of a repository ("repo.full") or of a person ("sender.login").
func activitySlot(facts map[string]slot[activity], name string) slot[activity] {
	if s, ok := facts[name]; ok {
		return s
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return nil
	}
	holder, field := name[:dot], name[dot+1:]
	if i := slices.Index(roles, holder); i >= 0 {
		return personSlot(i, field)
	}
	if i := slices.Index([]string{"repo", "fork"}, holder); i >= 0 {
		return repositorySlots(i)[field]
	}
	return nil
}

func personSlot(i int, field string) slot[activity] {
	switch field {
	case "login":
		return words(func(a *activity) []byte { return a.people[i].login })
	case "id":
		return number(func(a *activity) uint64 { return a.people[i].id })
	case "node_id":
		return func(dst []byte, a *activity) []byte { return appendNode(dst, "U_kgDO", a.people[i].id) }
	case "name":
		return func(dst []byte, a *activity) []byte {
			p := &a.people[i]
			return append(append(append(dst, p.first.full...), ' '), p.last.full...)
		}
	case "email":
		return func(dst []byte, a *activity) []byte {
			p := &a.people[i]
			dst = append(strconv.AppendUint(dst, p.id, 10), '+')
			return append(append(dst, p.login...), "@users.noreply.github.com"...)
		}
	default:
		return nil
	}
}

func repositorySlots(i int) map[string]slot[activity] {
	drawn := func(salt, lo, hi uint64) slot[activity] {
		return number(func(a *activity) uint64 { return among(draw(a.repos[i].id, salt), lo, hi) })
	}
	return map[string]slot[activity]{
		"id":           number(func(a *activity) uint64 { return a.repos[i].id }),
		"node_id":      func(dst []byte, a *activity) []byte { return appendNode(dst, "R_kgDO", a.repos[i].id) },
		"name":         words(func(a *activity) []byte { return a.repos[i].name }),
		"full":         words(func(a *activity) []byte { return a.repos[i].full }),
		"description":  words(func(a *activity) string { return pick(subjects, draw(a.repos[i].id, 2)) }),
		"is_fork":      literal[activity]([]string{"false", "true"}[i]),
		"created_at":   words(func(a *activity) []byte { return a.repos[i].created }),
		"created_unix": number(func(a *activity) uint64 { return a.repos[i].born }),
		"pushed_at":    words(func(a *activity) []byte { return a.now }),
		"language":     words(func(a *activity) string { return pick(languages, draw(a.repos[i].id, 3)) }),
		"size":         drawn(4, 120, 98_000),
		"stars":        drawn(5, 0, 2400),
		"forks":        drawn(6, 0, 300),
		"open_issues":  drawn(7, 1, 140),
	}
}

// activitySlots names the facts. It is called before the templates exist; the slots find them in g.
func activitySlots(g *github) map[string]slot[activity] {
	slots := map[string]slot[activity]{
		"action":    words(func(a *activity) string { return githubAction(a.e) }),
		"now":       words(func(a *activity) []byte { return a.now }),
		"now_unix":  number(func(a *activity) uint64 { return a.unix }),
		"opened_at": words(func(a *activity) []byte { return a.opened }),
		"state":     literal[activity]("open"),
		"closed_at": literal[activity]("null"),
		"version":   number(func(a *activity) uint64 { return uint64(a.e.Version) }),
		"starred_at": either(func(a *activity) bool { return githubAction(a.e) == "created" },
			quoted(func(a *activity) []byte { return a.now }), literal[activity]("null")),
		"title": words(func(a *activity) string { return pick(subjects, draw(a.e.ResourceDraw, 20)) }),
		"body": func(dst []byte, a *activity) []byte {
			most := uint64(8)
			if githubKinds[a.kind].body == "pull_request" {
				most = 4 // The rest of the body is long enough.
			}
			return appendProse(dst, draw(a.e.ResourceDraw, 21)+uint64(a.e.Version), most)
		},
		"run_status": either(ran, literal[activity]("completed"), words(func(a *activity) string {
			return []string{"queued", "in_progress"}[min(max(a.e.Version, 1), 2)-1]
		})),
		"run_conclusion": either(ran, quoted(func(a *activity) string {
			return pick([]string{"success", "success", "success", "failure", "cancelled"}, draw(a.e.Draw, 22))
		}), literal[activity]("null")),
		"installation":      literal[activity]("53817204"),
		"installation_node": literal[activity]("MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9uNTM4MTcyMDQ="),
		"branch": func(dst []byte, a *activity) []byte {
			r := draw(a.e.ResourceDraw, 23)
			dst = append(append(dst, pick([]string{"fix", "feature", "chore", "docs"}, r)...), '/')
			return strconv.AppendUint(append(append(dst, pick(repoWords, r>>8)...), '-'), r>>16%1000, 10)
		},
		"commits": func(dst []byte, a *activity) []byte {
			dst = append(dst, '[')
			for i := range a.commits {
				if i > 0 {
					dst = append(dst, ',')
				}
				a.at = a.commits - 1 - i // Oldest first: commit 0 is the head.
				dst = g.commit.append(dst, a)
			}
			a.at = 0
			return append(dst, ']')
		},
	}
	addActivityNumbers(slots)
	addCommitFacts(slots)
	return slots
}

// ran reports whether a workflow run is over.
func ran(a *activity) bool { return githubAction(a.e) == "completed" }

func addActivityNumbers(slots map[string]slot[activity]) {
	drawn := func(salt, lo, hi uint64) slot[activity] {
		return number(func(a *activity) uint64 { return among(draw(a.e.ResourceDraw, salt), lo, hi) })
	}
	node := func(prefix string, salt uint64) slot[activity] {
		return func(dst []byte, a *activity) []byte { return appendNode(dst, prefix, draw(a.e.ResourceKey, salt)) }
	}
	grown := func(salt, most uint64) slot[activity] {
		return number(func(a *activity) uint64 { return draw(a.e.ResourceDraw, salt)%most + uint64(a.e.Version) - 1 })
	}
	slots["number"] = drawn(30, 2, 9400)
	slots["issue_id"] = number(func(a *activity) uint64 { return resourceID(draw(a.e.ResourceKey, 31)) })
	slots["issue_node"] = node("I_kwDO", 32)
	slots["pull_node"] = node("PR_kwDO", 32)
	slots["release_node"] = node("RE_kwDO", 32)
	slots["run_node"] = node("WFR_kwLO", 32)
	slots["comments"] = grown(33, 6)
	slots["reactions"] = grown(34, 3)
	slots["additions"] = drawn(35, 1, 900)
	slots["deletions"] = drawn(36, 0, 400)
	slots["changed_files"] = drawn(37, 1, 24)
	slots["milestone"] = drawn(38, 1, 14)
	slots["milestone_id"] = drawn(39, 4_000_000, 12_000_000)
	slots["milestone_node"] = node("MI_kwDO", 39)
	slots["milestone_open"] = drawn(40, 1, 40)
	slots["milestone_closed"] = drawn(41, 0, 90)
	slots["milestone_text"] = words(func(a *activity) string { return pick(subjects, draw(a.e.ResourceDraw, 42)) })
	slots["suite_id"] = drawn(43, 20_000_000_000, 49_000_000_000)
	slots["suite_node"] = node("CS_kwDO", 43)
	slots["workflow_id"] = number(func(a *activity) uint64 { return among(draw(a.repos[0].id, 44), 20_000_000, 190_000_000) })
	slots["workflow_node"] = func(dst []byte, a *activity) []byte { return appendNode(dst, "W_kwDO", draw(a.repos[0].id, 44)) }
	slots["workflow"] = words(func(a *activity) string {
		return pick([]string{"ci", "test", "build", "lint", "deploy"}, draw(a.repos[0].id, 45))
	})
	slots["tag"] = func(dst []byte, a *activity) []byte {
		r := draw(a.e.ResourceDraw, 46)
		dst = append(strconv.AppendUint(append(dst, 'v'), r%9, 10), '.')
		dst = append(strconv.AppendUint(dst, r>>8%30, 10), '.')
		return strconv.AppendUint(dst, r>>16%12, 10)
	}
	slots["association"] = words(func(a *activity) string {
		return pick([]string{"OWNER", "MEMBER", "CONTRIBUTOR", "NONE", "COLLABORATOR"}, draw(a.e.ResourceDraw, 47))
	})
	label := func(f func(labelFacts) string) slot[activity] {
		return words(func(a *activity) string { return f(pick(labels, draw(a.e.ResourceDraw, 48))) })
	}
	slots["label"] = label(func(l labelFacts) string { return l.name })
	slots["label_color"] = label(func(l labelFacts) string { return l.color })
	slots["label_text"] = label(func(l labelFacts) string { return l.text })
	slots["label_id"] = drawn(49, 1_000_000_000, 8_000_000_000)
	slots["label_node"] = node("LA_kwDO", 49)
}

type labelFacts struct{ name, color, text string }

// labels are the default labels of a repository (https://docs.github.com/en/issues/using-labels-and-milestones-to-track-work/managing-labels, November 2026).
var labels = []labelFacts{
	{"bug", "d73a4a", "Something isn't working"}, {"documentation", "0075ca", "Improvements or additions to documentation"}, {"duplicate", "cfd3d7", "This issue or pull request already exists"},
	{"enhancement", "a2eeef", "New feature or request"}, {"good-first-issue", "7057ff", "Good for newcomers"}, {"question", "d876e3", "Further information is requested"},
}

// addCommitFacts are those of the commit at a.at; commit 0 is the head of the branch.
func addCommitFacts(slots map[string]slot[activity]) {
	sha := func(dst []byte, a *activity) []byte {
		if a.at == 0 {
			return append(dst, a.after...)
		}
		return appendHex(dst, draw(a.e.Key, 60+uint64(a.at)), 40)
	}
	hash := func(salt uint64, n int) slot[activity] {
		return func(dst []byte, a *activity) []byte { return appendHex(dst, draw(a.e.Key, salt), n) }
	}
	slots["commit.id"] = sha
	slots["commit.tree"] = func(dst []byte, a *activity) []byte { return appendHex(dst, draw(a.e.Key, 70+uint64(a.at)), 40) }
	slots["commit.message"] = func(dst []byte, a *activity) []byte {
		dst = append(append(dst, pick(subjects, draw(a.e.Draw, 80+uint64(a.at)))...), `\n\n`...)
		return append(dst, pick(sentences, draw(a.e.Draw, 90+uint64(a.at)))...)
	}
	slots["commit.file"] = func(dst []byte, a *activity) []byte {
		r := draw(a.e.Draw, 100+uint64(a.at))
		dst = append(append(dst, pick(repoKinds, r)...), '/')
		return append(append(dst, pick(repoWords, r>>8)...), pick([]string{".go", ".ts", ".rb", ".md", "_test.go"}, r>>16)...)
	}
	slots["after"] = words(func(a *activity) []byte { return a.after })
	slots["after_short"] = words(func(a *activity) []byte { return a.after[:12] })
	slots["before"] = hash(110, 40)
	slots["before_short"] = hash(110, 12)
	slots["base"] = hash(111, 40)
}
