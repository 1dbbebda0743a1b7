# Turns the output of `go test -json` into what `go test` prints, with the output of failed and skipped tests only, and
# ends with the line "N passed, N failed, N skipped". Any awk will do. The exit status is 1 if anything failed.

# field is the value of a string field of the one-line JSON object. A quote inside a value is escaped, so that no value can look like a field.
function field(name,    key, from, value) {
	key = "\"" name "\":\""
	from = index($0, key)
	if (from == 0) return ""
	value = substr($0, from + length(key))
	return match(value, /([^"\\]|\\.)*/) ? substr(value, 1, RLENGTH) : ""
}

# text undoes the escapes of a JSON string. Control characters that remain as \u00xx stay visible.
function text(s) {
	gsub(/\\\\/, "\001", s)
	gsub(/\\n/, "\n", s)
	gsub(/\\t/, "\t", s)
	gsub(/\\r/, "", s)
	gsub(/\\"/, "\"", s)
	gsub(/\\u003c/, "<", s)
	gsub(/\\u003e/, ">", s)
	gsub(/\\u0026/, "\\&", s)
	gsub(/\001/, "\\", s)
	return s
}

# Not an event: go itself complains.
!/^\{/ { print; next }

{
	action = field("Action"); test = field("Test"); package = field("Package")
	key = package " " test
}

action == "build-output" { printf "%s", text(field("Output")) }
action == "output" && test == "" && $0 !~ /"Output":"PASS\\n"/ { printf "%s", text(field("Output")) }
action == "output" && test != "" && $0 !~ /"Output":"=== / { kept[key] = kept[key] field("Output") }

test != "" && action == "pass" { passed++; delete kept[key] }
test != "" && action == "skip" { skipped++; printf "%s", text(kept[key]); delete kept[key] }
test != "" && action == "fail" { failed++; failures[package]++; printf "%s", text(kept[key]); delete kept[key] }

# A package that fails without a failed test did not build, panicked, leaked or ran out of time. The output of what it was doing then is all there is.
test == "" && action == "fail" && !(package in failures) {
	failed++
	for (k in kept) if (index(k, package " ") == 1) { printf "%s", text(kept[k]); delete kept[k] }
}

END {
	if (passed + failed == 0) print "no test ran"
	printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
	exit failed > 0 || passed == 0
}
