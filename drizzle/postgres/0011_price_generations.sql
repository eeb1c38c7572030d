CREATE TABLE "price_lists" (
	"provider" text COLLATE "C" PRIMARY KEY NOT NULL,
	"generation" integer,
	"next" integer
);
--> statement-breakpoint
ALTER TABLE "prices" ADD COLUMN "generation" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "prices" ALTER COLUMN "generation" DROP DEFAULT;--> statement-breakpoint
ALTER TABLE "prices" DROP CONSTRAINT "prices_prefix_provider_pk";--> statement-breakpoint
ALTER TABLE "prices" ADD CONSTRAINT "prices_generation_provider_prefix_pk" PRIMARY KEY("generation","provider","prefix");--> statement-breakpoint
INSERT INTO "price_lists"("provider", "generation") SELECT DISTINCT "provider", 0 FROM "prices";
