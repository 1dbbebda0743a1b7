package tape

import (
	"strings"
	"unicode"
)

// class is what a member's name says about its value.
type class uint8

const (
	// plain: nothing; the value is looked at for patterns.
	plain class = iota
	// fixed: what a replay needs as it is, such as a type or a status. Only patterns are replaced in it.
	fixed
	// ident: an id. It is kept, and a long number in it is no card.
	ident
	email
	phone
	network // an IP address
	// shaped: a credential, or an account or document number.
	shaped
	name
	address
	place // latitude or longitude
	birth
	// agent is a program or a version, which looks like an address.
	agent
	// maybeName and maybePlace decide by their surroundings: "name" of a customer or of a product, "state" of an address or of an invoice.
	maybeName
	maybePlace
)

// compounds are names, and the last two words of names, whose words say less alone. They are written without what separates the words.
var compounds = map[string]class{
	"useragent":    agent,
	"emailaddress": email, "emailaddresses": email,
	"ipaddress": network, "ipaddresses": network, "ipaddr": network, "remoteaddr": network, "forwardedfor": network,
	"firstname": name, "lastname": name, "middlename": name, "givenname": name, "familyname": name, "fullname": name, "maidenname": name,
	"preferredname": name, "nickname": name, "displayname": name, "legalname": name, "realname": name, "screenname": name, "username": name,
	"nameoncard": name, "oncard": name, "fromname": name, "toname": name, "secondname": name, "christianname": name,
	"line1": address, "line2": address, "line3": address, "firstline": address, "secondline": address, "addressline": address, "housenumber": address, "postalcode": address, "postcode": address,
	"zipcode":     address,
	"dateofbirth": birth, "ofbirth": birth, "birthdate": birth, "birthday": birth,
	"apikey": shaped, "accesskey": shaped, "privatekey": shaped, "secretkey": shaped, "signingkey": shaped, "encryptionkey": shaped, "authkey": shaped,
	"securitycode": shaped, "verificationcode": shaped, "onetimecode": shaped, "authcode": shaped, "resetcode": shaped,
	"cardnumber": shaped, "ccnumber": shaped, "accountnumber": shaped, "routingnumber": shaped, "sortcode": shaped, "bankaccount": shaped,
	"taxid": shaped, "vatid": shaped, "vatnumber": shaped, "nationalid": shaped, "passportnumber": shaped, "licensenumber": shaped, "last4": shaped, "lastfour": shaped,
}

// single are words that say it wherever they stand in a name.
var single = map[string]class{
	"email": email, "emails": email, "mail": email,
	"phone": phone, "phones": phone, "telephone": phone, "tel": phone, "mobile": phone, "mobilephone": phone, "cellphone": phone, "cell": phone, "fax": phone,
	"msisdn": phone, "whatsapp": phone, "phonenumber": phone, "homephone": phone, "workphone": phone,
	"ip": network, "ips": network,
	"token": shaped, "tokens": shaped, "secret": shaped, "secrets": shaped, "password": shaped, "passwd": shaped, "passphrase": shaped, "pwd": shaped,
	"authorization": shaped, "auth": shaped, "bearer": shaped, "credential": shaped, "credentials": shaped, "signature": shaped, "signatures": shaped,
	"hmac": shaped, "jwt": shaped, "otp": shaped, "cookie": shaped, "cookies": shaped, "apikey": shaped,
	"pan": shaped, "cvc": shaped, "cvv": shaped, "iban": shaped, "ssn": shaped, "passport": shaped,
	"surname": name, "forename": name, "login": name, "firstname": name, "lastname": name, "fullname": name, "username": name, "cardholder": name,
	"address": address, "addresses": address, "street": address, "city": address, "town": address, "zip": address, "postal": address, "postcode": address,
	"zipcode": address, "suburb": address, "apartment": address,
	"latitude": place, "longitude": place, "lat": place, "lng": place, "lon": place,
	"dob": birth, "birthday": birth, "birthdate": birth,
	"name": maybeName, "company": maybeName, "bio": maybeName,
	"state": maybePlace, "province": maybePlace, "region": maybePlace, "county": maybePlace, "location": maybePlace,
}

// heads are the last words of names that say what kind of thing the value is: a phone_status is a status and an address_id is an id.
var heads = map[string]class{
	"id": ident, "ids": ident, "gid": ident, "uuid": ident, "guid": ident, "uid": ident,
	"type": fixed, "types": fixed, "status": fixed, "kind": fixed, "at": fixed, "time": fixed, "timestamp": fixed, "date": fixed, "count": fixed, "amount": fixed,
	"total": fixed, "price": fixed, "currency": fixed, "version": agent, "check": fixed, "verified": fixed, "enabled": fixed, "valid": fixed, "required": fixed,
	"consent": fixed, "format": fixed, "size": fixed, "length": fixed, "level": fixed, "brand": fixed, "country": fixed, "locale": fixed, "language": fixed,
	"timezone": fixed, "topic": fixed, "event": fixed, "action": fixed, "scope": fixed, "method": fixed, "object": fixed, "reason": fixed, "mode": fixed,
}

// people are words that name a person, or a thing that has a name and an address as one.
var people = map[string]bool{
	"customer": true, "person": true, "user": true, "owner": true, "author": true, "committer": true, "sender": true, "pusher": true, "recipient": true,
	"contact": true, "profile": true, "buyer": true, "holder": true, "cardholder": true, "assignee": true, "reviewer": true, "member": true, "guest": true,
	"patient": true, "employee": true, "lead": true, "subscriber": true, "visitor": true, "billing": true, "shipping": true, "address": true,
}

// role is what a member's name says about the object that is its value.
type role struct{ person, place bool }

// classify tells what a name says about its value.
func classify(key string) class {
	words := splitWords(key)
	if len(words) == 0 {
		return plain
	}
	last := len(words) - 1
	for n := min(3, len(words)); n >= 2; n-- {
		if c, ok := compounds[strings.Join(words[len(words)-n:], "")]; ok {
			return c
		}
	}
	if c, ok := compounds[words[last]]; ok {
		return c
	}
	head := last
	for head > 0 && isDigits(words[head]) {
		head--
	}
	if c, ok := heads[words[head]]; ok {
		return c
	}
	if words[head] == "name" && head > 0 {
		if people[singular(words[head-1])] {
			return name
		}
		return plain // a product's, a campaign's
	}
	for i := last; i >= 0; i-- {
		if c, ok := single[words[i]]; ok && (len(words) == 1 || c != maybeName && c != maybePlace) {
			return c
		}
	}
	if c := single[words[0]]; c == maybePlace {
		return c // state_code
	}
	return plain
}

// roleOf tells what a name says about the object behind it.
func roleOf(key string) role {
	words := splitWords(key)
	last := len(words) - 1
	if last > 0 {
		switch words[last] {
		case "details", "info", "information", "data":
			last--
		}
	}
	if last < 0 {
		return role{}
	}
	head := singular(words[last])
	return role{
		person: people[head],
		place:  head == "address" || head == "billing" || head == "shipping" || head == "location",
	}
}

// redacts reports headers whose values are not stored: signatures, credentials, cookies, and digests of the body, by which a guess at what was replaced in it
// could be verified.
func redacts(header string) bool {
	words := splitWords(header)
	for i, w := range words {
		switch w {
		case "signature", "sig", "hmac", "authorization", "auth", "authentication", "cookie", "cookie2", "token", "secret", "password", "apikey", "credential",
			"credentials", "jwt", "bearer", "digest", "md", "session":
			return true
		case "key":
			if i > 0 && (words[i-1] == "api" || words[i-1] == "access" || words[i-1] == "auth") {
				return true
			}
		}
	}
	return false
}

// names reports headers whose value is the name of an event, and no secret, although they are called a token: Twilio's I-Twilio-Idempotency-Token.
func names(header string) bool {
	words := splitWords(header)
	last := len(words) - 1
	return last > 0 && words[last-1] == "idempotency" && (words[last] == "token" || words[last] == "key")
}

func singular(word string) string {
	switch {
	case word == "address":
		return word
	case word == "addresses":
		return "address"
	default:
		return strings.TrimSuffix(word, "s")
	}
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// splitWords splits a name into lower-case words: at everything that is no letter and no digit, and where camelCase has a hump. A digit belongs to the word
// before it, but "address1" is "address", "1", so that it is known by its word; line1 and last4 are compounds.
func splitWords(key string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	runes := []rune(key)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			continue
		case i == 0:
		case unicode.IsDigit(r) != unicode.IsDigit(runes[i-1]):
			end()
		case unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end()
		}
		word.WriteRune(r)
	}
	end()
	return words
}
