// Written by `bun run contract` from the declarations in src/adapters/http/endpoints. Edit those.

/** Why a request was rate-limited or is invalid. A newer service may have others. */
export type FailureReason =
  | 'phone_minute'
  | 'phone_hour'
  | 'app_minute'
  | 'mailbox_hour'
  | 'wrong_codes'
  | 'guard'
  | 'budget'
  | 'credentials'
  | 'client_ip'
  | 'queue'
  | 'destination'
  | 'field'

/** A code to a phone. A field email is ignored. */
export interface SmsOtpSendRequest {
  /** Slug of an active brand. Case and surrounding spaces are ignored. Without it, that of the client. */
  readonly brandId?: string
  readonly channel?: 'SMS'
  /**
   * A phone number with country code. Allowed are digits, spaces and + - ( ) . characters. A leading 00
   * and a trunk prefix are removed; 7 to 15 digits must remain. A server with PHONE_DEFAULT_REGION also
   * accepts national numbers, and rejects those that are a number of another country too. Send the
   * country code with +.
   */
  readonly phone: string
  /**
   * The login of the recipient. The message contains it if the brand has this enabled. The rules of
   * businessName apply: no invisible characters, no URL, no mixed scripts. 1 to 64 characters.
   */
  readonly loginId?: string
  /**
   * Replaces the brand's display name in the message, except on the template route, whose registered
   * text has the display name. No line breaks, no invisible characters, no URL other than a bare host
   * name, and no word that mixes letters of several alphabets. An app that is limited to brands cannot
   * use the name of another brand. 1 to 40 characters.
   */
  readonly businessName?: string
  /**
   * The language of the message, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language header.
   * The text is that of the tag, else of its base language, of the language of the brand, English. An
   * unknown or malformed tag is no error. On the template route, only the brand's language and
   * languages with a registration count.
   */
  readonly lang?: string
  /**
   * Your own id of this request, which the event log shows. No line breaks, no invisible characters. 1
   * to 64 characters.
   */
  readonly reference?: string
  /**
   * What the code is for, such as password-change. A verify must give the same purpose as the send, or
   * none if it had none: otherwise the answer is mismatch, which counts.
   */
  readonly purpose?: string
  /**
   * The payment that the code confirms, which the message names. A verify must give the same
   * transaction: otherwise the answer is mismatch, which counts. Amounts are compared by value, and the
   * case of the currency is ignored. The message then does not have the loginId, and is an SMS or an
   * e-mail.
   */
  readonly transaction?: {
    /** A decimal string of at most 12 digits before and 3 after the point, such as "1250.00". */
    readonly amount: string
    /** A currency code of ISO 4217, such as INR. */
    readonly currency: string
    /** 1 to 40 characters with a letter or digit, no URL. */
    readonly payee: string
  }
  /**
   * The IPv4 or IPv6 address of the end user's device, which the SMS pumping guard counts. Not the IP
   * address of your server. otpost stores only its hash.
   */
  readonly clientIp?: string
  /**
   * Your own random id of the end user's browser or app installation, which the SMS pumping guard
   * counts. No spaces. Never a value that many devices share. otpost stores only its hash. 1 to 128
   * characters.
   */
  readonly deviceId?: string
  /**
   * Whether the end user is already signed in to your application: the SMS pumping guard then judges
   * the code by clientIp and deviceId alone. Never take it from the end user.
   */
  readonly trustedUser?: boolean
  readonly via?: never
  readonly email?: never
}

/** A code by e-mail. A field phone is ignored. */
export interface EmailOtpSendRequest {
  /** Slug of an active brand. Case and surrounding spaces are ignored. Without it, that of the client. */
  readonly brandId?: string
  readonly channel: 'EMAIL'
  /**
   * One e-mail address of at most 254 characters, with at most 64 octets before the @. Case,
   * surrounding spaces and the spelling of an internationalized domain are ignored.
   */
  readonly email: string
  /**
   * The login of the recipient. The message contains it if the brand has this enabled. The rules of
   * businessName apply: no invisible characters, no URL, no mixed scripts. 1 to 64 characters.
   */
  readonly loginId?: string
  /**
   * Replaces the brand's display name in the message, except on the template route, whose registered
   * text has the display name. No line breaks, no invisible characters, no URL other than a bare host
   * name, and no word that mixes letters of several alphabets. An app that is limited to brands cannot
   * use the name of another brand. 1 to 40 characters.
   */
  readonly businessName?: string
  /**
   * The language of the message, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language header.
   * The text is that of the tag, else of its base language, of the language of the brand, English. An
   * unknown or malformed tag is no error. On the template route, only the brand's language and
   * languages with a registration count.
   */
  readonly lang?: string
  /**
   * Your own id of this request, which the event log shows. No line breaks, no invisible characters. 1
   * to 64 characters.
   */
  readonly reference?: string
  /**
   * What the code is for, such as password-change. A verify must give the same purpose as the send, or
   * none if it had none: otherwise the answer is mismatch, which counts.
   */
  readonly purpose?: string
  /**
   * The payment that the code confirms, which the message names. A verify must give the same
   * transaction: otherwise the answer is mismatch, which counts. Amounts are compared by value, and the
   * case of the currency is ignored. The message then does not have the loginId, and is an SMS or an
   * e-mail.
   */
  readonly transaction?: {
    /** A decimal string of at most 12 digits before and 3 after the point, such as "1250.00". */
    readonly amount: string
    /** A currency code of ISO 4217, such as INR. */
    readonly currency: string
    /** 1 to 40 characters with a letter or digit, no URL. */
    readonly payee: string
  }
  /**
   * The IPv4 or IPv6 address of the end user's device, which the SMS pumping guard counts. Not the IP
   * address of your server. otpost stores only its hash.
   */
  readonly clientIp?: string
  /**
   * Your own random id of the end user's browser or app installation, which the SMS pumping guard
   * counts. No spaces. Never a value that many devices share. otpost stores only its hash. 1 to 128
   * characters.
   */
  readonly deviceId?: string
  /**
   * Whether the end user is already signed in to your application: the SMS pumping guard then judges
   * the code by clientIp and deviceId alone. Never take it from the end user.
   */
  readonly trustedUser?: boolean
  readonly via?: never
  readonly phone?: never
}

/** The recipient of a code. SMS requires phone, EMAIL requires email. */
export type OtpSendRequest = SmsOtpSendRequest | EmailOtpSendRequest

/** A provider accepted the new code. */
export interface OtpSent {
  readonly success: true
  /** Text for people. Its wording may change. */
  readonly message: string
  /** Seconds until the code expires. */
  readonly expiresIn: number
  /** The id of this request, also in the header X-Request-Id and in the server log. */
  readonly requestId: string
}

/** Why send fails: each code of the service with the fields that come with it alone. */
export interface SendErrors {
  /**
   * 400: The body is not a JSON object, a field is missing or wrong, or Idempotency-Key is not 1 to 255
   * visible ASCII characters. 413: The body is larger than 16 KiB.
   */
  readonly validation_error: object
  /** 400: brandId is missing. */
  readonly brand_id_required: object
  /** 401: appId or apiKey is missing, or the Authorization header has another form. */
  readonly unauthorized: object
  /**
   * 403: The credentials are not valid, those in the header and in the body differ, or the app may not
   * use this operation. Do not retry.
   */
  readonly forbidden: object
  /** 403: The brand is unknown or pending, or the app may not use it. */
  readonly brand_not_approved: object
  /** 403: The brand is suspended. */
  readonly brand_suspended: object
  /** 409: The first request with this Idempotency-Key has no answer yet. */
  readonly idempotency_in_progress: object
  /** 422: The Idempotency-Key was used with another body. A new request needs a new key. */
  readonly idempotency_key_reused: object
  /**
   * 429: A limit of the phone, the mailbox, the application or the IP address is exhausted, or the
   * recipient had too many wrong codes within a day.
   */
  readonly rate_limited: object
  /** 429: The SMS cooldown for this brand and phone is active. */
  readonly cooldown_active: object
  /** 500: An unexpected error occurred. */
  readonly internal_error: object
  /** 502: No provider accepted the SMS or e-mail. The code is revoked. */
  readonly sms_failed: object
  /**
   * 503: The server has no room for the request, or the proxy before it got no answer. The request may
   * have had its effect. Repeat it only with the same Idempotency-Key.
   */
  readonly unavailable: object
}

/** Another code to a phone. A field email is ignored. */
export interface SmsOtpResendRequest {
  /** Slug of an active brand. Case and surrounding spaces are ignored. Without it, that of the client. */
  readonly brandId?: string
  readonly channel?: 'SMS'
  /**
   * A phone number with country code. Allowed are digits, spaces and + - ( ) . characters. A leading 00
   * and a trunk prefix are removed; 7 to 15 digits must remain. A server with PHONE_DEFAULT_REGION also
   * accepts national numbers, and rejects those that are a number of another country too. Send the
   * country code with +.
   */
  readonly phone: string
  /**
   * The login of the recipient. The message contains it if the brand has this enabled. The rules of
   * businessName apply: no invisible characters, no URL, no mixed scripts. 1 to 64 characters.
   */
  readonly loginId?: string
  /**
   * Replaces the brand's display name in the message, except on the template route, whose registered
   * text has the display name. No line breaks, no invisible characters, no URL other than a bare host
   * name, and no word that mixes letters of several alphabets. An app that is limited to brands cannot
   * use the name of another brand. 1 to 40 characters.
   */
  readonly businessName?: string
  /**
   * The language of the message, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language header.
   * The text is that of the tag, else of its base language, of the language of the brand, English. An
   * unknown or malformed tag is no error. On the template route, only the brand's language and
   * languages with a registration count.
   */
  readonly lang?: string
  /**
   * Your own id of this request, which the event log shows. No line breaks, no invisible characters. 1
   * to 64 characters.
   */
  readonly reference?: string
  /**
   * What the code is for, such as password-change. A verify must give the same purpose as the send, or
   * none if it had none: otherwise the answer is mismatch, which counts.
   */
  readonly purpose?: string
  /**
   * The payment that the code confirms, which the message names. A verify must give the same
   * transaction: otherwise the answer is mismatch, which counts. Amounts are compared by value, and the
   * case of the currency is ignored. The message then does not have the loginId, and is an SMS or an
   * e-mail.
   */
  readonly transaction?: {
    /** A decimal string of at most 12 digits before and 3 after the point, such as "1250.00". */
    readonly amount: string
    /** A currency code of ISO 4217, such as INR. */
    readonly currency: string
    /** 1 to 40 characters with a letter or digit, no URL. */
    readonly payee: string
  }
  /**
   * The IPv4 or IPv6 address of the end user's device, which the SMS pumping guard counts. Not the IP
   * address of your server. otpost stores only its hash.
   */
  readonly clientIp?: string
  /**
   * Your own random id of the end user's browser or app installation, which the SMS pumping guard
   * counts. No spaces. Never a value that many devices share. otpost stores only its hash. 1 to 128
   * characters.
   */
  readonly deviceId?: string
  /**
   * Whether the end user is already signed in to your application: the SMS pumping guard then judges
   * the code by clientIp and deviceId alone. Never take it from the end user.
   */
  readonly trustedUser?: boolean
  /**
   * The way of the new code to the phone. The server must have it. Absent or null: the first way of the
   * server, usually sms.
   */
  readonly via?: 'sms' | 'whatsapp' | 'telegram' | 'voice'
  readonly email?: never
}

/** The recipient of a code. SMS requires phone, EMAIL requires email. */
export type OtpResendRequest = SmsOtpResendRequest | EmailOtpSendRequest

/** Why resend fails: each code of the service with the fields that come with it alone. */
export interface ResendErrors {
  /**
   * 400: The body is not a JSON object, a field is missing or wrong, or Idempotency-Key is not 1 to 255
   * visible ASCII characters. 413: The body is larger than 16 KiB.
   */
  readonly validation_error: object
  /** 400: brandId is missing. */
  readonly brand_id_required: object
  /** 401: appId or apiKey is missing, or the Authorization header has another form. */
  readonly unauthorized: object
  /**
   * 403: The credentials are not valid, those in the header and in the body differ, or the app may not
   * use this operation. Do not retry.
   */
  readonly forbidden: object
  /** 403: The brand is unknown or pending, or the app may not use it. */
  readonly brand_not_approved: object
  /** 403: The brand is suspended. */
  readonly brand_suspended: object
  /** 409: The first request with this Idempotency-Key has no answer yet. */
  readonly idempotency_in_progress: object
  /** 422: The Idempotency-Key was used with another body. A new request needs a new key. */
  readonly idempotency_key_reused: object
  /**
   * 429: A limit of the phone, the mailbox, the application or the IP address is exhausted, or the
   * recipient had too many wrong codes within a day.
   */
  readonly rate_limited: object
  /** 429: The SMS cooldown for this brand and phone is active. */
  readonly cooldown_active: object
  /** 500: An unexpected error occurred. */
  readonly internal_error: object
  /** 502: No provider accepted the SMS or e-mail. The code is revoked. */
  readonly sms_failed: object
  /**
   * 503: The server has no room for the request, or the proxy before it got no answer. The request may
   * have had its effect. Repeat it only with the same Idempotency-Key.
   */
  readonly unavailable: object
}

/** A code that was sent by SMS. */
export interface PhoneOtpVerifyRequest {
  /** Slug of an active brand. Case and surrounding spaces are ignored. Without it, that of the client. */
  readonly brandId?: string
  /**
   * A phone number with country code. Allowed are digits, spaces and + - ( ) . characters. A leading 00
   * and a trunk prefix are removed; 7 to 15 digits must remain. A server with PHONE_DEFAULT_REGION also
   * accepts national numbers, and rejects those that are a number of another country too. Send the
   * country code with +.
   */
  readonly phone: string
  /** The code that the recipient entered: six digits. */
  readonly otp: string
  /**
   * What the code is for, such as password-change. A verify must give the same purpose as the send, or
   * none if it had none: otherwise the answer is mismatch, which counts.
   */
  readonly purpose?: string
  /**
   * The payment that the code confirms, which the message names. A verify must give the same
   * transaction: otherwise the answer is mismatch, which counts. Amounts are compared by value, and the
   * case of the currency is ignored. The message then does not have the loginId, and is an SMS or an
   * e-mail.
   */
  readonly transaction?: {
    /** A decimal string of at most 12 digits before and 3 after the point, such as "1250.00". */
    readonly amount: string
    /** A currency code of ISO 4217, such as INR. */
    readonly currency: string
    /** 1 to 40 characters with a letter or digit, no URL. */
    readonly payee: string
  }
  /**
   * True: the answer has a proof of the verification, for another service. It has the full phone number
   * or e-mail address.
   */
  readonly proof?: boolean
  readonly email?: never
}

/** A code that was sent by e-mail. */
export interface EmailOtpVerifyRequest {
  /** Slug of an active brand. Case and surrounding spaces are ignored. Without it, that of the client. */
  readonly brandId?: string
  /**
   * One e-mail address of at most 254 characters, with at most 64 octets before the @. Case,
   * surrounding spaces and the spelling of an internationalized domain are ignored.
   */
  readonly email: string
  /** The code that the recipient entered: six digits. */
  readonly otp: string
  /**
   * What the code is for, such as password-change. A verify must give the same purpose as the send, or
   * none if it had none: otherwise the answer is mismatch, which counts.
   */
  readonly purpose?: string
  /**
   * The payment that the code confirms, which the message names. A verify must give the same
   * transaction: otherwise the answer is mismatch, which counts. Amounts are compared by value, and the
   * case of the currency is ignored. The message then does not have the loginId, and is an SMS or an
   * e-mail.
   */
  readonly transaction?: {
    /** A decimal string of at most 12 digits before and 3 after the point, such as "1250.00". */
    readonly amount: string
    /** A currency code of ISO 4217, such as INR. */
    readonly currency: string
    /** 1 to 40 characters with a letter or digit, no URL. */
    readonly payee: string
  }
  /**
   * True: the answer has a proof of the verification, for another service. It has the full phone number
   * or e-mail address.
   */
  readonly proof?: boolean
  readonly phone?: never
}

/** A code to verify, with the phone or the email that it was sent to. */
export type OtpVerifyRequest = PhoneOtpVerifyRequest | EmailOtpVerifyRequest

/** The code was correct and is consumed. */
export interface OtpVerified {
  readonly success: true
  /** Text for people. Its wording may change. */
  readonly message: string
  /**
   * Only with proof: true. A JWS (EdDSA with Ed25519) with the claims iss, aud (appId), iat, exp (10
   * minutes), jti (requestId), brandId, channel and to. It has purpose and transaction if the verify
   * had them, and review: true for a review number. GET /.well-known/jwks.json has the public keys.
   */
  readonly proof?: string
  /** The id of this request, also in the header X-Request-Id and in the server log. */
  readonly requestId: string
}

/** Why verify fails: each code of the service with the fields that come with it alone. */
export interface VerifyErrors {
  /**
   * 400: otp is missing, not exactly one of phone and email is given, proof is not a boolean, or
   * purpose or transaction is invalid. Also: the body is not a JSON object, or Idempotency-Key is not 1
   * to 255 visible ASCII characters. 413: The body is larger than 16 KiB.
   */
  readonly validation_error: object
  /** 400: brandId is missing. */
  readonly brand_id_required: object
  /** 400: otp is not a string. */
  readonly invalid_input: object
  /** 400: The phone or email is invalid. */
  readonly invalid_contact: object
  /** 400: appId has a colon, or is not 1 to 64 visible ASCII characters. */
  readonly invalid_app_id: object
  /** 400: otp is not six digits. */
  readonly invalid_otp_format: object
  /** 401: appId or apiKey is missing, or the Authorization header has another form. */
  readonly unauthorized: object
  /**
   * 401: The code is wrong, or it was sent with another purpose or transaction. The third wrong attempt
   * has this answer too.
   */
  readonly mismatch: object
  /**
   * 403: The credentials are not valid, those in the header and in the body differ, or the app may not
   * use this operation. Do not retry.
   */
  readonly forbidden: object
  /** 403: The brand is unknown or pending, or the app may not use it. */
  readonly brand_not_approved: object
  /** 403: The brand is suspended. */
  readonly brand_suspended: object
  /** 404: There is no active code: never sent, expired, consumed or replaced. */
  readonly not_found: object
  /** 409: The first request with this Idempotency-Key has no answer yet. */
  readonly idempotency_in_progress: object
  /** 422: The Idempotency-Key was used with another body. A new request needs a new key. */
  readonly idempotency_key_reused: object
  /**
   * 429: A limit of the application or the IP address is exhausted, or the recipient had too many wrong
   * codes within a day.
   */
  readonly rate_limited: object
  /** 429: The code is locked after three wrong attempts, also for the correct code. Resend. */
  readonly max_attempts: object
  /** 500: An unexpected error occurred. */
  readonly internal_error: object
  /**
   * 503: The server has no room for the request, or the proxy before it got no answer. The request may
   * have had its effect. Repeat it only with the same Idempotency-Key.
   */
  readonly unavailable: object
}

/** An SMS with free text. brandId or variables.businessName selects the brand. */
export interface TextSmsRequest {
  readonly channel: 'SMS'
  /** 1 to 100 recipients. A recipient that appears twice gets one message. */
  readonly to: readonly string[]
  /**
   * Your own id of this request, which the event log shows. No line breaks, no invisible characters. 1
   * to 64 characters.
   */
  readonly reference?: string
  /**
   * The language of a template SMS, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language
   * header. The text is that of the tag, else of its base language, of the language of the brand,
   * English. An unknown or malformed tag is no error. Built-in texts are in English. Of an e-mail with
   * `template`: the language that it is in.
   */
  readonly lang?: string
  /** Slug of an active brand. Case and surrounding spaces are ignored. Without it, that of the client. */
  readonly brandId?: string
  /**
   * true: the service stores the messages, answers 202, and sends them after that. It sends a message
   * that was certainly not sent again until expiresAt.
   */
  readonly async?: boolean
  /**
   * Only with async: true. An ISO 8601 time with a time zone, at most 24 hours in the future. Absent:
   * one hour from now. No try begins later.
   */
  readonly expiresAt?: string
  /**
   * The text of the SMS. No invisible characters other than U+200C, U+200D and U+FE00 to U+FE0F. 1 to
   * 1600 characters.
   */
  readonly message: string
  /** Only businessName is used. */
  readonly variables?: {
    /**
     * Slug or display name of an active brand. It selects the brand if brandId is absent. With brandId,
     * it must be the same brand. The text has the display name in both cases.
     */
    readonly businessName?: string
  }
  readonly otp?: never
  readonly subject?: never
  readonly html?: never
  readonly template?: never
  readonly data?: never
  readonly templateKey?: never
}

/** An SMS from a registered template. brandId or variables.businessName selects the brand. */
export type TemplateSmsRequest =
  | {
      readonly channel: 'SMS'
      /** 1 to 100 recipients. A recipient that appears twice gets one message. */
      readonly to: readonly string[]
      /**
       * Your own id of this request, which the event log shows. No line breaks, no invisible characters. 1
       * to 64 characters.
       */
      readonly reference?: string
      /**
       * The language of a template SMS, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language
       * header. The text is that of the tag, else of its base language, of the language of the brand,
       * English. An unknown or malformed tag is no error. Built-in texts are in English. Of an e-mail with
       * `template`: the language that it is in.
       */
      readonly lang?: string
      /** Slug of an active brand. Case and surrounding spaces are ignored. Without it, that of the client. */
      readonly brandId?: string
      /**
       * true: the service stores the messages, answers 202, and sends them after that. It sends a message
       * that was certainly not sent again until expiresAt.
       */
      readonly async?: boolean
      /**
       * Only with async: true. An ISO 8601 time with a time zone, at most 24 hours in the future. Absent:
       * one hour from now. No try begins later.
       */
      readonly expiresAt?: string
      readonly templateKey: 'ORDER_PLACED'
      /**
       * ORDER_PLACED requires customerName, orderId, orderDate. Other variables are ignored; otp is
       * rejected.
       */
      readonly variables: {
        /** 1 to 40 characters, no control or invisible characters, no URL. */
        readonly customerName: string
        /** 1 to 40 letters, digits and . _ / # -, beginning with a letter or digit, no URL. */
        readonly orderId: string
        /** A date that exists, YYYY-MM-DD. */
        readonly orderDate: string
        /**
         * Slug or display name of an active brand. It selects the brand if brandId is absent. With brandId,
         * it must be the same brand. The text has the display name in both cases.
         */
        readonly businessName?: string
        readonly otp?: never
        readonly deliveryDateTime?: never
      }
      readonly otp?: never
      readonly subject?: never
      readonly html?: never
      readonly template?: never
      readonly data?: never
      readonly message?: never
    }
  | {
      readonly channel: 'SMS'
      /** 1 to 100 recipients. A recipient that appears twice gets one message. */
      readonly to: readonly string[]
      /**
       * Your own id of this request, which the event log shows. No line breaks, no invisible characters. 1
       * to 64 characters.
       */
      readonly reference?: string
      /**
       * The language of a template SMS, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language
       * header. The text is that of the tag, else of its base language, of the language of the brand,
       * English. An unknown or malformed tag is no error. Built-in texts are in English. Of an e-mail with
       * `template`: the language that it is in.
       */
      readonly lang?: string
      /** Slug of an active brand. Case and surrounding spaces are ignored. Without it, that of the client. */
      readonly brandId?: string
      /**
       * true: the service stores the messages, answers 202, and sends them after that. It sends a message
       * that was certainly not sent again until expiresAt.
       */
      readonly async?: boolean
      /**
       * Only with async: true. An ISO 8601 time with a time zone, at most 24 hours in the future. Absent:
       * one hour from now. No try begins later.
       */
      readonly expiresAt?: string
      readonly templateKey: 'OUT_FOR_DELIVERY'
      /** OUT_FOR_DELIVERY requires customerName, orderId. Other variables are ignored; otp is rejected. */
      readonly variables: {
        /** 1 to 40 characters, no control or invisible characters, no URL. */
        readonly customerName: string
        /** 1 to 40 letters, digits and . _ / # -, beginning with a letter or digit, no URL. */
        readonly orderId: string
        /**
         * Slug or display name of an active brand. It selects the brand if brandId is absent. With brandId,
         * it must be the same brand. The text has the display name in both cases.
         */
        readonly businessName?: string
        readonly orderDate?: never
        readonly otp?: never
        readonly deliveryDateTime?: never
      }
      readonly otp?: never
      readonly subject?: never
      readonly html?: never
      readonly template?: never
      readonly data?: never
      readonly message?: never
    }
  | {
      readonly channel: 'SMS'
      /** 1 to 100 recipients. A recipient that appears twice gets one message. */
      readonly to: readonly string[]
      /**
       * Your own id of this request, which the event log shows. No line breaks, no invisible characters. 1
       * to 64 characters.
       */
      readonly reference?: string
      /**
       * The language of a template SMS, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language
       * header. The text is that of the tag, else of its base language, of the language of the brand,
       * English. An unknown or malformed tag is no error. Built-in texts are in English. Of an e-mail with
       * `template`: the language that it is in.
       */
      readonly lang?: string
      /** Slug of an active brand. Case and surrounding spaces are ignored. Without it, that of the client. */
      readonly brandId?: string
      /**
       * true: the service stores the messages, answers 202, and sends them after that. It sends a message
       * that was certainly not sent again until expiresAt.
       */
      readonly async?: boolean
      /**
       * Only with async: true. An ISO 8601 time with a time zone, at most 24 hours in the future. Absent:
       * one hour from now. No try begins later.
       */
      readonly expiresAt?: string
      readonly templateKey: 'ORDER_DELIVERED'
      /**
       * ORDER_DELIVERED requires customerName, orderId, deliveryDateTime. Other variables are ignored; otp
       * is rejected.
       */
      readonly variables: {
        /** 1 to 40 characters, no control or invisible characters, no URL. */
        readonly customerName: string
        /** 1 to 40 letters, digits and . _ / # -, beginning with a letter or digit, no URL. */
        readonly orderId: string
        /** An ISO 8601 date and time that exist, with minutes at least. */
        readonly deliveryDateTime: string
        /**
         * Slug or display name of an active brand. It selects the brand if brandId is absent. With brandId,
         * it must be the same brand. The text has the display name in both cases.
         */
        readonly businessName?: string
        readonly orderDate?: never
        readonly otp?: never
      }
      readonly otp?: never
      readonly subject?: never
      readonly html?: never
      readonly template?: never
      readonly data?: never
      readonly message?: never
    }

/** An e-mail with your own HTML. */
export interface HtmlEmailRequest {
  readonly channel: 'EMAIL'
  /** 1 to 100 recipients. A recipient that appears twice gets one message. */
  readonly to: readonly string[]
  /**
   * Your own id of this request, which the event log shows. No line breaks, no invisible characters. 1
   * to 64 characters.
   */
  readonly reference?: string
  /**
   * The language of a template SMS, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language
   * header. The text is that of the tag, else of its base language, of the language of the brand,
   * English. An unknown or malformed tag is no error. Built-in texts are in English. Of an e-mail with
   * `template`: the language that it is in.
   */
  readonly lang?: string
  /**
   * An active brand, whose name becomes the sender name. Any other value is ignored. Without it, that
   * of the client.
   */
  readonly brandId?: string
  /** No line breaks, no invisible characters. 1 to 255 characters. */
  readonly subject: string
  /**
   * true: the service stores the messages, answers 202, and sends them after that. It sends a message
   * that was certainly not sent again until expiresAt.
   */
  readonly async?: boolean
  /**
   * Only with async: true. An ISO 8601 time with a time zone, at most 24 hours in the future. Absent:
   * one hour from now. No try begins later.
   */
  readonly expiresAt?: string
  /** The HTML of the e-mail. 1 to 200000 characters. */
  readonly html: string
  readonly otp?: never
  readonly message?: never
  readonly templateKey?: never
  readonly variables?: never
  readonly template?: never
  readonly data?: never
}

/** An e-mail from a text template, in a simple HTML frame with the subject as heading. */
export interface TemplateEmailRequest {
  readonly channel: 'EMAIL'
  /** 1 to 100 recipients. A recipient that appears twice gets one message. */
  readonly to: readonly string[]
  /**
   * Your own id of this request, which the event log shows. No line breaks, no invisible characters. 1
   * to 64 characters.
   */
  readonly reference?: string
  /**
   * The language of a template SMS, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language
   * header. The text is that of the tag, else of its base language, of the language of the brand,
   * English. An unknown or malformed tag is no error. Built-in texts are in English. Of an e-mail with
   * `template`: the language that it is in.
   */
  readonly lang?: string
  /**
   * An active brand, whose name becomes the sender name. Any other value is ignored. Without it, that
   * of the client.
   */
  readonly brandId?: string
  /** No line breaks, no invisible characters. 1 to 255 characters. */
  readonly subject: string
  /**
   * true: the service stores the messages, answers 202, and sends them after that. It sends a message
   * that was certainly not sent again until expiresAt.
   */
  readonly async?: boolean
  /**
   * Only with async: true. An ISO 8601 time with a time zone, at most 24 hours in the future. Absent:
   * one hour from now. No try begins later.
   */
  readonly expiresAt?: string
  /**
   * Plain text. `{{name}}` is replaced by that value of data. The rendered e-mail must have at most 256
   * KiB. 1 to 10000 characters.
   */
  readonly template: string
  /** Values of the placeholders. Other values follow as a table below the text. */
  readonly data?: Readonly<Record<string, unknown>>
  readonly otp?: never
  readonly message?: never
  readonly templateKey?: never
  readonly variables?: never
  readonly html?: never
}

/** A message to each of some recipients, in one of four modes. */
export type NotifyRequest = TextSmsRequest | TemplateSmsRequest | HtmlEmailRequest | TemplateEmailRequest

/** A provider accepted the message to each recipient. */
export interface Notified {
  readonly success: true
  /** Text for people. Its wording may change. */
  readonly message: string
  readonly channel: 'SMS' | 'EMAIL'
  /** Only for a template SMS. */
  readonly templateKey?: string
  /** The id of this request, also in the header X-Request-Id and in the server log. */
  readonly requestId: string
}

/** The messages are stored. POST /messages/status has their status. */
export interface NotificationAccepted {
  readonly success: true
  /** Text for people. Its wording may change. */
  readonly message: string
  readonly channel: 'SMS' | 'EMAIL'
  /** How many messages are stored. */
  readonly recipients: number
  /** The id of this request, also in the header X-Request-Id and in the server log. */
  readonly requestId: string
}

/** Why notify fails: each code of the service with the fields that come with it alone. */
export interface NotifyErrors {
  /**
   * 400: The body is not a JSON object, a field is missing or wrong, or Idempotency-Key is not 1 to 255
   * visible ASCII characters. 413: The body is larger than 256 KiB.
   */
  readonly validation_error: object
  /** 400: SMS: neither brandId nor variables.businessName. */
  readonly brand_id_required: object
  /** 400: channel is neither SMS nor EMAIL. */
  readonly invalid_channel: object
  /** 400: SMS: variables.businessName is not the brand of brandId. */
  readonly unsupported_business: object
  /** 400: SMS: the template does not exist. */
  readonly invalid_template: object
  /** 400: SMS: LOGIN_OTP, LOGIN_OTP_WITH_ID and TRANSACTION_OTP are only for the OTP endpoints. */
  readonly otp_template_not_supported: object
  /** 400: A variable of the template, or the data of a placeholder, is missing. */
  readonly missing_variable: object
  /** 401: appId or apiKey is missing, or the Authorization header has another form. */
  readonly unauthorized: object
  /**
   * 403: The credentials are not valid, those in the header and in the body differ, or the app may not
   * use this operation. Do not retry.
   */
  readonly forbidden: object
  /** 403: SMS: the brand is unknown or pending, or the app may not use it. */
  readonly brand_not_approved: object
  /** 403: SMS: the brand is suspended. */
  readonly brand_suspended: object
  /** 403: SMS: the brand has not enabled this template. */
  readonly template_not_allowed: object
  /** 409: The first request with this Idempotency-Key has no answer yet. */
  readonly idempotency_in_progress: object
  /** 422: The Idempotency-Key was used with another body. A new request needs a new key. */
  readonly idempotency_key_reused: object
  /** 429: A limit of the application or the IP address is exhausted. With async: too many messages wait. */
  readonly rate_limited: object
  /** 500: At least one message was not accepted by a provider. recipients has the status of each. */
  readonly notification_failed: {
    readonly channel: 'SMS' | 'EMAIL'
    /** Every recipient, in the order of to. */
    readonly recipients: readonly {
      /** The position of the recipient in to, from 0. A recipient that appears twice has the first. */
      readonly index: number
      /** `unknown`: the provider did not answer, and may or may not send the message. */
      readonly status: 'accepted' | 'failed' | 'unknown'
    }[]
  }
  /** 500: An unexpected error occurred. */
  readonly internal_error: object
  /**
   * 503: The server has no room for the request, or the proxy before it got no answer. The request may
   * have had its effect. Repeat it only with the same Idempotency-Key.
   */
  readonly unavailable: object
}

/** The request whose messages you ask about. */
export interface MessageStatusRequest {
  /** The requestId in the answer to a send, resend or notify of this application. */
  readonly messageRequestId: string
}

/** The status of each message of the request. */
export interface MessageStatus {
  readonly success: true
  /** Text for people. Its wording may change. */
  readonly message: string
  readonly request: {
    /** The messageRequestId of the request. */
    readonly requestId: string
    readonly operation: 'send' | 'resend' | 'notify'
    readonly channel: 'SMS' | 'EMAIL'
    /** Null for an e-mail without a brand. */
    readonly brandId: string | null
    readonly createdAt: string
    /** The reference of the request; null without one. */
    readonly reference: string | null
  }
  /** Every recipient, in the order of to. */
  readonly recipients: readonly {
    /** The position of the recipient in to, from 0. A recipient that appears twice has the first. */
    readonly index: number
    /** The recipient, masked. */
    readonly to: string
    /**
     * `queued`: not sent yet. `accepted`: a provider accepted the message. `delivered`: a provider
     * reported the delivery. `failed`: not sent, or a provider reported a failure. `unknown`: it may or
     * may not have been sent.
     */
    readonly status: 'queued' | 'accepted' | 'delivered' | 'failed' | 'unknown'
    /** Since when it has this status. */
    readonly updatedAt: string
  }[]
  /** The id of this request, also in the header X-Request-Id and in the server log. */
  readonly requestId: string
}

/** Why messageStatus fails: each code of the service with the fields that come with it alone. */
export interface MessageStatusErrors {
  /**
   * 400: messageRequestId is missing or not a string, or the body is not a JSON object. 413: The body
   * is larger than 256 KiB.
   */
  readonly validation_error: object
  /** 401: appId or apiKey is missing, or the Authorization header has another form. */
  readonly unauthorized: object
  /**
   * 403: The credentials are not valid, those in the header and in the body differ, or the app may not
   * use this operation. Do not retry.
   */
  readonly forbidden: object
  /**
   * 404: No request of this application has this requestId, the request was rejected, or the event log
   * no longer has it.
   */
  readonly not_found: object
  /**
   * 429: This application sent 60 status requests within a minute, or a limit of the IP address is
   * exhausted.
   */
  readonly rate_limited: object
  /** 500: An unexpected error occurred. */
  readonly internal_error: object
  /**
   * 503: The server has no room for the request, or the proxy before it got no answer. The request may
   * have had its effect.
   */
  readonly unavailable: object
}

/** The channels, templates and limits. */
export interface Catalog {
  readonly success: true
  readonly channels: readonly ('SMS' | 'EMAIL')[]
  /**
   * The built-in templates of /notify, which the operator enables for each brand, and the enabled
   * templates of the active brands.
   */
  readonly templates: readonly {
    /** The templateKey. */
    readonly key: string
    readonly channel: 'SMS'
    /** The brand that has this template. Absent: the template is built in. */
    readonly brandId?: string
    readonly variables: readonly {
      readonly name: string
      readonly required: boolean
      /** A number is a JSON number or its digits as a string. All other values are strings. */
      readonly type: 'text' | 'number' | 'date' | 'datetime' | 'url'
      /** The rule for a value, as text. */
      readonly description: string
      readonly minLength?: number
      readonly maxLength?: number
      readonly pattern?: string
      /**
       * Only of a brand's own template: the greatest length of the value in the text; of a number, the
       * greatest value.
       */
      readonly max?: number
    }[]
  }[]
  /** The limits that this server enforces. */
  readonly limits: {
    /** Requests per minute for one application. */
    readonly globalPerMinute: number
    /** SMS codes per minute for one phone. */
    readonly phonePerMinute: number
    /** SMS codes per hour for one phone. */
    readonly phonePerHour: number
    /** Seconds between two SMS codes for one brand and phone. */
    readonly smsCooldownSeconds: number
    /** Codes by e-mail per hour for one mailbox; 0 means no limit. */
    readonly emailPerHour: number
    /** Seconds until a code expires. */
    readonly otpTtlSeconds: number
    /** Wrong attempts that lock a code. */
    readonly otpMaxAttempts: number
    /** Digits of a code. */
    readonly otpLength: number
    /** Maximum number of elements in to. */
    readonly notifyRecipients: number
    /** Maximum length of message. */
    readonly messageCharacters: number
    /** Maximum length of subject. */
    readonly subjectCharacters: number
    /** Maximum length of html. */
    readonly htmlCharacters: number
    /** Maximum length of an e-mail template. */
    readonly templateCharacters: number
  }
  /**
   * With the parameter country: the ways by which a code may go to a phone there, that of a send first.
   * A resend chooses one by via.
   */
  readonly ways?: readonly ('sms' | 'whatsapp' | 'telegram' | 'voice')[]
  /** The id of this request, also in the header X-Request-Id and in the server log. */
  readonly requestId: string
}

/** Why catalog fails: each code of the service with the fields that come with it alone. */
export interface CatalogErrors {
  /** 400: The parameter country is wrong. */
  readonly validation_error: object
  /** 500: An unexpected error occurred. */
  readonly internal_error: object
  /** 503: The proxy before the server got no answer. */
  readonly unavailable: object
}

/** A request for access, with a contact and a brand. */
export interface IntegrationRequest {
  /** 1 to 100 characters. */
  readonly companyName: string
  /** 1 to 100 characters. */
  readonly contactName: string
  /**
   * One e-mail address of at most 254 characters, with at most 64 octets before the @. Case,
   * surrounding spaces and the spelling of an internationalized domain are ignored.
   */
  readonly contactEmail: string
  /** The display name for messages. 1 to 40 characters. */
  readonly brandName: string
  /** The channels that you want to use. Case is ignored. */
  readonly channels?: readonly ('SMS' | 'EMAIL')[]
  /** An http or https URL. 0 to 255 characters. */
  readonly website?: string
  /** What you want to send. 1 to 2000 characters. */
  readonly useCase?: string
}

/** The request is stored. The operator answers by other means. */
export interface IntegrationReceived {
  readonly success: true
  /** Text for people. Its wording may change. */
  readonly message: string
  /** Give this id to the operator with a question. */
  readonly integrationRequestId: string
  readonly status: 'pending'
  /** The id of this request, also in the header X-Request-Id and in the server log. */
  readonly requestId: string
}

/** Why requestAccess fails: each code of the service with the fields that come with it alone. */
export interface RequestAccessErrors {
  /**
   * 400: The body is not a JSON object, or a field is missing or wrong. 413: The body is larger than
   * 256 KiB.
   */
  readonly validation_error: object
  /**
   * 429: This IP address sent 5 requests within an hour. Without `reason`: too many requests are
   * pending.
   */
  readonly rate_limited: object
  /** 500: An unexpected error occurred. */
  readonly internal_error: object
  /**
   * 503: The server has no room for the request, or the proxy before it got no answer. The request may
   * have had its effect.
   */
  readonly unavailable: object
}

/** The active brands. */
export interface Brands {
  readonly success: true
  readonly brands: readonly {
    readonly brandId: string
    readonly displayName: string
  }[]
  /** The id of this request, also in the header X-Request-Id and in the server log. */
  readonly requestId: string
}

/** Why brands fails: each code of the service with the fields that come with it alone. */
export interface BrandsErrors {
  /** 500: An unexpected error occurred. */
  readonly internal_error: object
  /** 503: The proxy before the server got no answer. */
  readonly unavailable: object
}

/** Of this package. */
export const version = '0.1.0'

/**
 * What the client knows of each operation as it runs: its HTTP method and path, the fields that its
 * success has, and its codes.
 */
export const operations = {
  send: {
    verb: 'POST',
    path: '/otp/send',
    fields: { message: 'string', expiresIn: 'number', requestId: 'string' },
    errors: [
      'validation_error',
      'brand_id_required',
      'unauthorized',
      'forbidden',
      'brand_not_approved',
      'brand_suspended',
      'idempotency_in_progress',
      'idempotency_key_reused',
      'rate_limited',
      'cooldown_active',
      'internal_error',
      'sms_failed',
      'unavailable',
    ],
  },
  resend: {
    verb: 'POST',
    path: '/otp/resend',
    fields: { message: 'string', expiresIn: 'number', requestId: 'string' },
    errors: [
      'validation_error',
      'brand_id_required',
      'unauthorized',
      'forbidden',
      'brand_not_approved',
      'brand_suspended',
      'idempotency_in_progress',
      'idempotency_key_reused',
      'rate_limited',
      'cooldown_active',
      'internal_error',
      'sms_failed',
      'unavailable',
    ],
  },
  verify: {
    verb: 'POST',
    path: '/otp/verify',
    fields: { message: 'string', requestId: 'string' },
    errors: [
      'validation_error',
      'brand_id_required',
      'invalid_input',
      'invalid_contact',
      'invalid_app_id',
      'invalid_otp_format',
      'unauthorized',
      'mismatch',
      'forbidden',
      'brand_not_approved',
      'brand_suspended',
      'not_found',
      'idempotency_in_progress',
      'idempotency_key_reused',
      'rate_limited',
      'max_attempts',
      'internal_error',
      'unavailable',
    ],
  },
  notify: {
    verb: 'POST',
    path: '/notify',
    fields: { message: 'string', channel: 'string', requestId: 'string' },
    errors: [
      'validation_error',
      'brand_id_required',
      'invalid_channel',
      'unsupported_business',
      'invalid_template',
      'otp_template_not_supported',
      'missing_variable',
      'unauthorized',
      'forbidden',
      'brand_not_approved',
      'brand_suspended',
      'template_not_allowed',
      'idempotency_in_progress',
      'idempotency_key_reused',
      'rate_limited',
      'notification_failed',
      'internal_error',
      'unavailable',
    ],
  },
  messageStatus: {
    verb: 'POST',
    path: '/messages/status',
    fields: { message: 'string', request: 'object', recipients: 'object', requestId: 'string' },
    errors: [
      'validation_error',
      'unauthorized',
      'forbidden',
      'not_found',
      'rate_limited',
      'internal_error',
      'unavailable',
    ],
  },
  catalog: {
    verb: 'GET',
    path: '/integrations/catalog',
    fields: { channels: 'object', templates: 'object', limits: 'object', requestId: 'string' },
    errors: ['validation_error', 'internal_error', 'unavailable'],
  },
  requestAccess: {
    verb: 'POST',
    path: '/integrations/requests',
    fields: { message: 'string', integrationRequestId: 'string', status: 'string', requestId: 'string' },
    errors: ['validation_error', 'rate_limited', 'internal_error', 'unavailable'],
  },
  brands: {
    verb: 'GET',
    path: '/platform/brands',
    fields: { brands: 'object', requestId: 'string' },
    errors: ['internal_error', 'unavailable'],
  },
} as const
