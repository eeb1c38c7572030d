ALTER TABLE "events" ADD COLUMN "tried_at" bigint;--> statement-breakpoint
ALTER TABLE "webhooks" ADD COLUMN "previous_secrets" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_previous_secrets" CHECK (jsonb_typeof("webhooks"."previous_secrets") = 'array');