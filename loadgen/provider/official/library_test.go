package official_test

import (
	"encoding/json"
	"errors"
	"time"

	paddle "github.com/PaddleHQ/paddle-go-sdk/v4"
	"github.com/adyen/adyen-go-api-library/v21/src/hmacvalidator"
	adyen "github.com/adyen/adyen-go-api-library/v21/src/webhook"
	goshopify "github.com/bold-commerce/go-shopify/v4"
	"github.com/google/go-github/v90/github"
	"github.com/mailgun/mailgun-go/v5"
	"github.com/mailgun/mailgun-go/v5/mtypes"
	"github.com/sendgrid/sendgrid-go/helpers/eventwebhook"
	"github.com/slack-go/slack"
	"github.com/square/square-go-sdk"
	squarewebhooks "github.com/square/square-go-sdk/webhooks/client"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	stripe "github.com/stripe/stripe-go/v86/webhook"
	svix "github.com/svix/svix-webhooks/go"
	twilio "github.com/twilio/twilio-go/client"
)

// library is how a receiver uses one of the libraries.
type library struct {
	name string
	// provider is the simulated one whose requests it verifies.
	provider string
	// verify returns why the request is not taken, nil if it is. The secret is what a receiver is given.
	verify func(secret string, r *request) error
	// read returns the events that the library's parser finds in a request. Nil: it has no parser.
	read func(r *request) ([]fact, error)
	// types is how many types of event the provider has: a sample with fewer proves less than it seems to.
	types int
	// rotates: while a secret is being replaced, the provider signs with the old one too. misread is what the library makes of that where it does not take it.
	rotates bool
	misread error
	// prescient: it refuses dates ahead, although the provider's rule is about age alone.
	prescient bool
}

// fact is what a receiver needs to know of an event.
type fact struct{ ID, Type string }

// errNoMatch is the refusal of a library that answers with a bool.
var errNoMatch = errors.New("signature does not match")

func libraries() []library {
	return []library{
		{name: "stripe-go", provider: "stripe", verify: verifyStripe, read: readStripe, types: 12, rotates: true},
		{name: "go-shopify", provider: "shopify", verify: verifyShopify, read: readShopify, types: 4},
		{name: "go-shopify verbose", provider: "shopify", verify: verifyShopifyVerbose, types: 4},
		{name: "go-github", provider: "github", verify: verifyGitHub, read: readGitHub, types: 18},
		{name: "go-github SHA-1", provider: "github", verify: verifyGitHubSHA1, types: 18},
		{name: "standard-webhooks", provider: "standard-webhooks", verify: verifyStandard, types: 8, rotates: true},
		{name: "svix", provider: "svix", verify: verifySvix, types: 8, rotates: true},
		// Svix under its customer's name sends the headers of Standard Webhooks.
		{name: "svix unbranded", provider: "standard-webhooks", verify: verifySvix, types: 8, rotates: true},
		{name: "slack-go", provider: "slack", verify: verifySlack, read: readSlack, types: 7},
		{name: "square-go-sdk", provider: "square", verify: verifySquare, read: readSquare, types: 8},
		{name: "mailgun-go", provider: "mailgun", verify: verifyMailgun, read: readMailgun, types: 6},
		{name: "sendgrid-go", provider: "sendgrid", verify: verifySendGrid, types: 9},
		{name: "adyen-go-api-library", provider: "adyen", verify: verifyAdyen, read: readAdyen, types: 7},
		{name: "twilio-go", provider: "twilio", verify: verifyTwilio, types: 11},
		// Its pattern for the header has room for one signature, so that a receiver built on it refuses everything while a secret is being replaced.
		{name: "paddle-go-sdk", provider: "paddle", verify: verifyPaddle, read: readPaddle, types: 10, rotates: true, misread: paddle.ErrInvalidSignatureFormat, prescient: true},
	}
}

// verifyStripe does not compare API versions: a library accepts those of its own release train alone, and which one an endpoint gets is its owner's choice.
func verifyStripe(secret string, r *request) error {
	_, err := stripe.ConstructEventWithOptions(r.Body, r.Header.Get("Stripe-Signature"), secret, stripe.ConstructEventOptions{IgnoreAPIVersionMismatch: true})
	return err
}

func verifyShopify(secret string, r *request) error {
	return orNoMatch(goshopify.App{ApiSecret: secret}.VerifyWebhookRequest(r.http()), nil)
}

// verifyShopifyVerbose calls the function beside it, which says why.
func verifyShopifyVerbose(secret string, r *request) error {
	return orNoMatch(goshopify.App{ApiSecret: secret}.VerifyWebhookRequestVerbose(r.http()))
}

func verifyGitHub(secret string, r *request) error {
	_, err := github.ValidatePayload(r.http(), []byte(secret))
	return err
}

// verifyGitHubSHA1 is what receivers of before 2020 do.
func verifyGitHubSHA1(secret string, r *request) error {
	return github.ValidateSignature(r.Header.Get(github.SHA1SignatureHeader), r.Body, []byte(secret))
}

func verifyStandard(secret string, r *request) error {
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return wh.Verify(r.Body, r.Header)
}

func verifySvix(secret string, r *request) error {
	wh, err := svix.NewWebhook(secret)
	if err != nil {
		return err
	}
	return wh.Verify(r.Body, r.Header)
}

func verifySlack(secret string, r *request) error {
	verifier, err := slack.NewSecretsVerifier(r.Header, secret)
	if err != nil {
		return err
	}
	if _, err := verifier.Write(r.Body); err != nil {
		return err
	}
	return verifier.Ensure()
}

func verifySquare(secret string, r *request) error {
	in := r.http()
	return squarewebhooks.NewClient().VerifySignature(in.Context(), &square.VerifySignatureRequest{
		RequestBody: string(r.Body), SignatureHeader: in.Header.Get("x-square-hmacsha256-signature"), SignatureKey: secret, NotificationURL: r.url,
	})
}

func verifyMailgun(secret string, r *request) error {
	var payload mtypes.WebhookPayload
	if err := json.Unmarshal(r.Body, &payload); err != nil {
		return err
	}
	mg := mailgun.NewMailgun("key")
	mg.SetWebhookSigningKey(secret)
	return orNoMatch(mg.VerifyWebhookSignature(payload.Signature))
}

func verifySendGrid(secret string, r *request) error {
	key, err := eventwebhook.ConvertPublicKeyBase64ToECDSA(secret)
	if err != nil {
		return err
	}
	signature, stamp := r.Header.Get(eventwebhook.VerificationHTTPHeader), r.Header.Get(eventwebhook.TimestampHTTPHeader)
	return orNoMatch(eventwebhook.VerifySignature(key, r.Body, signature, stamp))
}

func verifyAdyen(secret string, r *request) error {
	notification, err := adyen.HandleRequest(string(r.Body))
	if err != nil {
		return err
	}
	items := notification.GetNotificationItems()
	if len(items) == 0 {
		return errors.New("no items")
	}
	for _, item := range items {
		if !hmacvalidator.ValidateHmac(*item, secret) {
			return errNoMatch
		}
	}
	return nil
}

func verifyTwilio(secret string, r *request) error {
	validator := twilio.NewRequestValidator(secret)
	return orNoMatch(validator.ValidateBody(r.url, r.Body, r.Header.Get("X-Twilio-Signature")), nil)
}

// paddleTolerance is what the helpers for other languages enforce and the documentation asks of all:
// https://developer.paddle.com/webhooks/about/signature-verification (November 2026).
const paddleTolerance = 5 * time.Second

// verifyPaddle sets the tolerance of Paddle's documentation: the library for Go has none of its own.
func verifyPaddle(secret string, r *request) error {
	return orNoMatch(paddle.NewWebhookVerifier(secret, paddle.VerifierWithTimestampTolerance(paddleTolerance)).Verify(r.http()))
}

// orNoMatch makes one error of a library's two answers.
func orNoMatch(ok bool, err error) error {
	if err == nil && !ok {
		return errNoMatch
	}
	return err
}
