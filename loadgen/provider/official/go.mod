module floodproof/loadgen/provider/official

go 1.26.0

require (
	floodproof v0.0.0
	github.com/PaddleHQ/paddle-go-sdk/v4 v4.2.0
	github.com/adyen/adyen-go-api-library/v21 v21.2.0
	github.com/bold-commerce/go-shopify/v4 v4.7.0
	github.com/google/go-github/v90 v90.0.0
	github.com/mailgun/mailgun-go/v5 v5.17.0
	github.com/sendgrid/sendgrid-go v3.16.1+incompatible
	github.com/slack-go/slack v0.36.0
	github.com/square/square-go-sdk v1.5.0
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	github.com/stripe/stripe-go/v86 v86.1.1
	github.com/svix/svix-webhooks v1.99.1
	github.com/twilio/twilio-go v1.31.0
)

require (
	github.com/ggicci/httpin v0.20.1 // indirect
	github.com/ggicci/owl v0.8.2 // indirect
	github.com/golang/mock v1.6.0 // indirect
	github.com/google/go-querystring v1.2.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/oapi-codegen/runtime v1.4.2 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/shopspring/decimal v0.0.0-20200105231215-408a2507e114 // indirect
)

// The repository that this module lies in.
replace floodproof => ../../..
