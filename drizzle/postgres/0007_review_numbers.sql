CREATE TABLE "review_numbers" (
	"subject" text COLLATE "C" NOT NULL,
	"brand_slug" text COLLATE "C" NOT NULL,
	"keyed_code" text NOT NULL,
	"masked" text NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	CONSTRAINT "review_numbers_subject_brand_slug_pk" PRIMARY KEY("subject","brand_slug")
);
