CREATE TABLE "operators" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"email" text COLLATE "C" NOT NULL,
	"role" text NOT NULL,
	"password_hash" text,
	"totp_secret" text,
	"totp_step" bigint DEFAULT 0 NOT NULL,
	"created_at" bigint NOT NULL,
	"signed_in_at" bigint,
	"failed_sign_ins" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "operators_email_unique" UNIQUE("email"),
	CONSTRAINT "operators_role" CHECK ("operators"."role" IN ('viewer', 'operator', 'owner'))
);
--> statement-breakpoint
CREATE TABLE "passkeys" (
	"credential_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"operator_id" text COLLATE "C" NOT NULL,
	"name" text NOT NULL,
	"public_key" text NOT NULL,
	"sign_count" bigint NOT NULL,
	"transports" text NOT NULL,
	"created_at" bigint NOT NULL,
	"used_at" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "recovery_codes" (
	"operator_id" text COLLATE "C" NOT NULL,
	"code_sha256" text COLLATE "C" NOT NULL,
	CONSTRAINT "recovery_codes_operator_id_code_sha256_pk" PRIMARY KEY("operator_id","code_sha256")
);
--> statement-breakpoint
ALTER TABLE "attempts" ADD COLUMN "lang" text;--> statement-breakpoint
ALTER TABLE "console_links" ADD COLUMN "operator_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "console_sessions" ADD COLUMN "operator_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "console_sessions" ADD COLUMN "confirmed_at" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "console_sessions" ADD COLUMN "client_ip" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "console_sessions" ADD COLUMN "device" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "requests" ADD COLUMN "lang" text;