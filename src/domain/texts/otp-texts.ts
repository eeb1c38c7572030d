import { preferredTags } from '../ground/languages.ts'

// Three sentences each: the code, its lifetime, a warning. The last ones are dropped where a last line needs their place.
// Texts are GSM-7 where the language allows that. Arabic and Urdu begin with a letter of theirs, from which phones take
// the direction of the text.

export interface OtpLanguage {
  readonly tag: string
  /** 300: "5 minutes", 90: "90 seconds". */
  readonly lifetime: (seconds: number) => string
  /** The text of an SMS. */
  readonly LOGIN_OTP: string
  readonly LOGIN_OTP_WITH_ID: string
  /** The first sentence has all of the transaction: it is also the intro of an e-mail. */
  readonly TRANSACTION_OTP: string
  /** The parts of an e-mail. */
  readonly subject: string
  readonly intro: string
  readonly expiry: string
  readonly unrequested: string
}

type Unit = string | ((count: number) => string)

function inUnits(minute: Unit, second: Unit): OtpLanguage['lifetime'] {
  return (seconds) => {
    const [count, unit] = seconds % 60 === 0 ? [seconds / 60, minute] : [seconds, second]
    return `${count}${typeof unit === 'string' ? unit : unit(count)}`
  }
}

function forms(one: string, more: string): Unit {
  return (count) => (count === 1 ? one : more)
}

/** After 3 to 10, and after 103 to 110, the noun is plural. */
function arabicForms(one: string, few: string): Unit {
  return (count) => (count % 100 >= 3 && count % 100 <= 10 ? few : one)
}

export const english: OtpLanguage = {
  tag: 'en',
  lifetime: inUnits(forms(' minute', ' minutes'), forms(' second', ' seconds')),
  LOGIN_OTP:
    '{{otp}} is your {{businessName}} verification code. It expires in {{lifetime}}. Do not share it with anyone.',
  LOGIN_OTP_WITH_ID:
    '{{otp}} is your {{businessName}} verification code for {{loginId}}. It expires in {{lifetime}}. Do not share it with anyone.',
  TRANSACTION_OTP:
    '{{otp}} is your {{businessName}} code to pay {{amount}} in {{currency}} to {{payee}}. It expires in {{lifetime}}. Do not share it with anyone.',
  subject: 'Your {{businessName}} verification code',
  intro: 'Enter this code to continue with {{businessName}}:',
  expiry: 'The code expires in {{lifetime}}. You can use it once.',
  unrequested:
    'If you did not request this code, ignore this e-mail: someone may have entered your e-mail address by mistake. Never share the code, even with someone who claims to be from {{businessName}}.',
}

export const otpLanguages: readonly OtpLanguage[] = [
  english,
  {
    tag: 'hi',
    lifetime: inUnits(' मिनट', ' सेकंड'),
    LOGIN_OTP: 'आपका {{businessName}} कोड {{otp}} है। {{lifetime}} तक मान्य। किसी को न बताएं।',
    LOGIN_OTP_WITH_ID: '{{loginId}} का {{businessName}} कोड {{otp}}। {{lifetime}} मान्य। किसी को न बताएं।',
    TRANSACTION_OTP:
      '{{payee}} को {{currency}} में {{amount}} देने का {{businessName}} कोड {{otp}}। {{lifetime}} तक मान्य। किसी को न बताएं।',
    subject: 'आपका {{businessName}} सत्यापन कोड',
    intro: '{{businessName}} पर आगे बढ़ने के लिए यह कोड डालें:',
    expiry: 'यह कोड {{lifetime}} तक मान्य है और एक ही बार इस्तेमाल हो सकता है।',
    unrequested:
      'अगर आपने यह कोड नहीं मांगा था, तो इस ईमेल पर ध्यान न दें: हो सकता है कि किसी ने गलती से आपका ईमेल पता लिख दिया हो। यह कोड किसी को न बताएं, {{businessName}} की ओर से बात करने का दावा करने वाले को भी नहीं।',
  },
  {
    tag: 'es',
    lifetime: inUnits(forms(' minuto', ' minutos'), forms(' segundo', ' segundos')),
    // Not "código": GSM-7 has no ó.
    LOGIN_OTP: 'Tu clave de {{businessName}} es {{otp}}. Caduca en {{lifetime}}. No la compartas con nadie.',
    LOGIN_OTP_WITH_ID:
      'La clave de {{businessName}} para {{loginId}} es {{otp}}. Caduca en {{lifetime}}. No la compartas con nadie.',
    TRANSACTION_OTP:
      '{{otp}} es tu clave de {{businessName}} para pagar {{amount}} {{currency}} a {{payee}}. Caduca en {{lifetime}}. No la compartas con nadie.',
    subject: 'Tu código de verificación de {{businessName}}',
    intro: 'Introduce este código para continuar en {{businessName}}:',
    expiry: 'El código caduca en {{lifetime}}. Solo se puede usar una vez.',
    unrequested:
      'Si no has pedido este código, ignora este correo: puede que alguien haya escrito tu dirección por error. No compartas nunca el código, ni siquiera con quien diga ser de {{businessName}}.',
  },
  {
    tag: 'fr',
    lifetime: inUnits(forms(' minute', ' minutes'), forms(' seconde', ' secondes')),
    LOGIN_OTP:
      'Votre code {{businessName}} est {{otp}}. Il expire dans {{lifetime}}. Ne le communiquez à personne.',
    LOGIN_OTP_WITH_ID:
      'Le code {{businessName}} pour {{loginId}} est {{otp}}. Il expire dans {{lifetime}}. Ne le communiquez à personne.',
    TRANSACTION_OTP:
      '{{otp}} est votre code {{businessName}} pour payer {{amount}} {{currency}} à {{payee}}. Il expire dans {{lifetime}}. Ne le communiquez à personne.',
    subject: 'Votre code de vérification {{businessName}}',
    intro: 'Saisissez ce code pour continuer sur {{businessName}} :',
    expiry: 'Ce code expire dans {{lifetime}}. Il ne peut servir qu’une fois.',
    unrequested:
      'Si vous n’avez pas demandé ce code, ignorez cet e-mail : quelqu’un a peut-être saisi votre adresse par erreur. Ne communiquez jamais ce code, même à une personne qui dit travailler pour {{businessName}}.',
  },
  {
    tag: 'de',
    lifetime: inUnits(forms(' Minute', ' Minuten'), forms(' Sekunde', ' Sekunden')),
    LOGIN_OTP:
      '{{otp}} ist Ihr Code für {{businessName}}. Er läuft in {{lifetime}} ab. Geben Sie ihn nicht weiter.',
    LOGIN_OTP_WITH_ID:
      '{{otp}} ist der Code von {{businessName}} für {{loginId}}. Er läuft in {{lifetime}} ab. Geben Sie ihn nicht weiter.',
    TRANSACTION_OTP:
      '{{otp}} ist Ihr Code von {{businessName}}, um {{amount}} {{currency}} an {{payee}} zu zahlen. Er läuft in {{lifetime}} ab. Geben Sie ihn nicht weiter.',
    subject: 'Ihr Bestätigungscode für {{businessName}}',
    intro: 'Geben Sie diesen Code ein, um bei {{businessName}} fortzufahren:',
    expiry: 'Der Code läuft in {{lifetime}} ab. Sie können ihn einmal verwenden.',
    unrequested:
      'Wenn Sie diesen Code nicht angefordert haben, ignorieren Sie diese E-Mail: Vielleicht hat jemand versehentlich Ihre Adresse eingegeben. Geben Sie den Code niemals weiter, auch nicht an Personen, die sich als {{businessName}} ausgeben.',
  },
  {
    tag: 'pt',
    lifetime: inUnits(forms(' minuto', ' minutos'), forms(' segundo', ' segundos')),
    // Not "código" and "não": GSM-7 has no ó and no ã.
    LOGIN_OTP: 'O seu PIN {{businessName}} é {{otp}}. Expira em {{lifetime}}. Nunca o revele a ninguém.',
    LOGIN_OTP_WITH_ID:
      'O PIN {{businessName}} para {{loginId}} é {{otp}}. Expira em {{lifetime}}. Nunca o revele a ninguém.',
    TRANSACTION_OTP:
      '{{otp}} é o seu PIN {{businessName}} para pagar {{amount}} {{currency}} a {{payee}}. Expira em {{lifetime}}. Nunca o revele a ninguém.',
    subject: 'O seu código de verificação {{businessName}}',
    intro: 'Insira este código para continuar em {{businessName}}:',
    expiry: 'O código expira em {{lifetime}}. Só pode ser usado uma vez.',
    unrequested:
      'Se não pediu este código, ignore este e-mail: alguém pode ter indicado o seu endereço por engano. Nunca revele o código, nem a quem disser que é de {{businessName}}.',
  },
  {
    tag: 'it',
    lifetime: inUnits(forms(' minuto', ' minuti'), forms(' secondo', ' secondi')),
    LOGIN_OTP:
      'Il tuo codice {{businessName}} è {{otp}}. Scade tra {{lifetime}}. Non condividerlo con nessuno.',
    LOGIN_OTP_WITH_ID:
      'Il codice {{businessName}} per {{loginId}} è {{otp}}. Scade tra {{lifetime}}. Non condividerlo con nessuno.',
    TRANSACTION_OTP:
      '{{otp}} è il tuo codice {{businessName}} per pagare {{amount}} {{currency}} a {{payee}}. Scade tra {{lifetime}}. Non condividerlo con nessuno.',
    subject: 'Il tuo codice di verifica {{businessName}}',
    intro: 'Inserisci questo codice per continuare su {{businessName}}:',
    expiry: 'Il codice scade tra {{lifetime}}. Puoi usarlo una sola volta.',
    unrequested:
      'Se non hai richiesto questo codice, ignora questa e-mail: qualcuno potrebbe aver inserito il tuo indirizzo per errore. Non condividere mai il codice, nemmeno con chi dice di lavorare per {{businessName}}.',
  },
  {
    tag: 'ar',
    lifetime: inUnits(arabicForms(' دقيقة', ' دقائق'), arabicForms(' ثانية', ' ثوان')),
    LOGIN_OTP: 'رمز {{businessName}} هو {{otp}}. صالح لمدة {{lifetime}}. لا تشاركه مع أحد.',
    LOGIN_OTP_WITH_ID: 'رمز {{businessName}} للحساب {{loginId}} هو {{otp}}. صالح {{lifetime}}. لا تشاركه.',
    TRANSACTION_OTP:
      'رمز {{businessName}} لدفع {{amount}} {{currency}} إلى {{payee}} هو {{otp}}. صالح لمدة {{lifetime}}. لا تشاركه مع أحد.',
    subject: 'رمز التحقق الخاص بك في {{businessName}}',
    intro: 'أدخل هذا الرمز للمتابعة في {{businessName}}:',
    expiry: 'الرمز صالح لمدة {{lifetime}}، ويمكن استخدامه مرة واحدة فقط.',
    unrequested:
      'إذا لم تطلب هذا الرمز فتجاهل هذه الرسالة، فربما أدخل شخص ما عنوان بريدك الإلكتروني عن طريق الخطأ. لا تشارك الرمز أبدًا، حتى مع من يقول إنه من {{businessName}}.',
  },
  {
    tag: 'ja',
    lifetime: inUnits('分', '秒'),
    LOGIN_OTP:
      '{{businessName}}の認証コードは{{otp}}です。有効期限は{{lifetime}}です。他人に教えないでください。',
    LOGIN_OTP_WITH_ID:
      '{{businessName}}の認証コード（{{loginId}}）は{{otp}}です。有効期限は{{lifetime}}です。他人に教えないでください。',
    TRANSACTION_OTP:
      '{{businessName}}の認証コード（{{payee}}への{{amount}} {{currency}}の支払い）は{{otp}}です。有効期限は{{lifetime}}です。他人に教えないでください。',
    subject: '{{businessName}}の認証コード',
    intro: '{{businessName}}の手続きを続けるには、次のコードを入力してください。',
    expiry: 'このコードの有効期限は{{lifetime}}です。使用できるのは1回だけです。',
    unrequested:
      'このコードに心当たりがない場合は、このメールを無視してください。ほかの方が誤ってあなたのメールアドレスを入力した可能性があります。{{businessName}}の関係者を名乗る人にも、コードを絶対に教えないでください。',
  },
  {
    tag: 'zh',
    lifetime: inUnits('分钟', '秒'),
    LOGIN_OTP: '您的{{businessName}}验证码是{{otp}}。{{lifetime}}内有效。请勿告知他人。',
    LOGIN_OTP_WITH_ID: '账号{{loginId}}的{{businessName}}验证码是{{otp}}。{{lifetime}}内有效。请勿告知他人。',
    TRANSACTION_OTP:
      '您在{{businessName}}向{{payee}}支付{{amount}} {{currency}}的验证码是{{otp}}。{{lifetime}}内有效。请勿告知他人。',
    subject: '您的{{businessName}}验证码',
    intro: '请输入以下验证码，以继续使用{{businessName}}：',
    expiry: '验证码在{{lifetime}}内有效，只能使用一次。',
    unrequested:
      '如果您没有请求此验证码，请忽略这封邮件：可能有人误填了您的邮箱地址。请勿将验证码告知任何人，包括自称来自{{businessName}}的人。',
  },
  {
    tag: 'ru',
    lifetime: inUnits(' мин', ' с'),
    LOGIN_OTP: 'Код {{businessName}}: {{otp}}. Действует {{lifetime}}. Никому его не сообщайте.',
    LOGIN_OTP_WITH_ID: 'Код {{businessName}} ({{loginId}}): {{otp}}. Срок: {{lifetime}}. Не сообщайте его.',
    TRANSACTION_OTP:
      'Код {{businessName}} для оплаты {{amount}} {{currency}} в пользу {{payee}}: {{otp}}. Действует {{lifetime}}. Никому его не сообщайте.',
    subject: 'Ваш код подтверждения {{businessName}}',
    intro: 'Введите этот код, чтобы продолжить работу с {{businessName}}:',
    expiry: 'Код действует {{lifetime}}. Использовать его можно один раз.',
    unrequested:
      'Если вы не запрашивали этот код, не обращайте внимания на это письмо: возможно, кто-то указал ваш адрес по ошибке. Никому не сообщайте код, даже тем, кто представляется сотрудником {{businessName}}.',
  },
  {
    tag: 'tr',
    lifetime: inUnits(' dakika', ' saniye'),
    LOGIN_OTP: '{{businessName}} kodunuz: {{otp}}. Süresi: {{lifetime}}. Kimseye vermeyin.',
    LOGIN_OTP_WITH_ID:
      '{{businessName}} kodunuz ({{loginId}}): {{otp}}. Süresi: {{lifetime}}. Kimseye vermeyin.',
    TRANSACTION_OTP:
      '{{businessName}} ödeme kodunuz ({{payee}}, {{amount}} {{currency}}): {{otp}}. Süresi: {{lifetime}}. Kimseye vermeyin.',
    subject: '{{businessName}} doğrulama kodunuz',
    intro: '{{businessName}} ile devam etmek için bu kodu girin:',
    expiry: 'Kod {{lifetime}} boyunca geçerlidir. Yalnızca bir kez kullanılabilir.',
    unrequested:
      'Bu kodu siz istemediyseniz bu e-postayı dikkate almayın: biri e-posta adresinizi yanlışlıkla girmiş olabilir. Kodu kimseyle paylaşmayın; {{businessName}} adına aradığını söyleyenlerle bile.',
  },
  {
    tag: 'id',
    lifetime: inUnits(' menit', ' detik'),
    LOGIN_OTP: 'Kode {{businessName}} Anda: {{otp}}. Berlaku {{lifetime}}. Jangan berikan kepada siapa pun.',
    LOGIN_OTP_WITH_ID:
      'Kode {{businessName}} untuk {{loginId}}: {{otp}}. Berlaku {{lifetime}}. Jangan berikan kepada siapa pun.',
    TRANSACTION_OTP:
      'Kode {{businessName}} untuk membayar {{amount}} {{currency}} kepada {{payee}}: {{otp}}. Berlaku {{lifetime}}. Jangan berikan kepada siapa pun.',
    subject: 'Kode verifikasi {{businessName}} Anda',
    intro: 'Masukkan kode ini untuk melanjutkan di {{businessName}}:',
    expiry: 'Kode ini berlaku {{lifetime}} dan hanya dapat digunakan satu kali.',
    unrequested:
      'Jika Anda tidak meminta kode ini, abaikan email ini: mungkin seseorang salah memasukkan alamat email Anda. Jangan pernah berikan kode ini, bahkan kepada orang yang mengaku dari {{businessName}}.',
  },
  {
    tag: 'vi',
    lifetime: inUnits(' phút', ' giây'),
    LOGIN_OTP: 'Mã {{businessName}}: {{otp}}. Hết hạn sau {{lifetime}}. Đừng cho ai biết.',
    LOGIN_OTP_WITH_ID: 'Mã {{businessName}} ({{loginId}}): {{otp}}. Hạn: {{lifetime}}. Đừng cho ai biết.',
    TRANSACTION_OTP:
      'Mã {{businessName}} để trả {{amount}} {{currency}} cho {{payee}}: {{otp}}. Hết hạn sau {{lifetime}}. Đừng cho ai biết.',
    subject: 'Mã xác minh {{businessName}} của bạn',
    intro: 'Nhập mã này để tiếp tục với {{businessName}}:',
    expiry: 'Mã hết hạn sau {{lifetime}} và chỉ dùng được một lần.',
    unrequested:
      'Nếu bạn không yêu cầu mã này, hãy bỏ qua email này: có thể ai đó đã nhập nhầm địa chỉ email của bạn. Tuyệt đối không chia sẻ mã, kể cả với người tự nhận là nhân viên của {{businessName}}.',
  },
  {
    tag: 'bn',
    lifetime: inUnits(' মিনিট', ' সেকেন্ড'),
    LOGIN_OTP: 'আপনার {{businessName}} কোড {{otp}}। মেয়াদ {{lifetime}}। কাউকে বলবেন না।',
    LOGIN_OTP_WITH_ID: '{{loginId}}: {{businessName}} কোড {{otp}}। মেয়াদ {{lifetime}}। কাউকে বলবেন না।',
    TRANSACTION_OTP:
      '{{payee}}-কে {{currency}} মুদ্রায় {{amount}} দেওয়ার {{businessName}} কোড {{otp}}। মেয়াদ {{lifetime}}। কাউকে বলবেন না।',
    subject: 'আপনার {{businessName}} যাচাইকরণ কোড',
    intro: '{{businessName}}-এ এগিয়ে যেতে এই কোডটি লিখুন:',
    expiry: 'কোডটির মেয়াদ {{lifetime}}। এটি একবারই ব্যবহার করা যাবে।',
    unrequested:
      'আপনি এই কোড না চেয়ে থাকলে এই ইমেল উপেক্ষা করুন: কেউ হয়তো ভুল করে আপনার ইমেল ঠিকানা লিখেছেন। কোডটি কাউকে বলবেন না, কেউ নিজেকে {{businessName}}-এর লোক বলে দাবি করলেও নয়।',
  },
  {
    tag: 'ta',
    lifetime: inUnits(forms(' நிமிடம்', ' நிமிடங்கள்'), forms(' விநாடி', ' விநாடிகள்')),
    LOGIN_OTP: '{{businessName}} குறியீடு {{otp}}. {{lifetime}} செல்லும். பகிராதீர்கள்.',
    LOGIN_OTP_WITH_ID: '{{businessName}} OTP ({{loginId}}) {{otp}}. {{lifetime}} செல்லும். பகிராதீர்.',
    TRANSACTION_OTP:
      '{{payee}} பெறுநருக்கு {{currency}} நாணயத்தில் {{amount}} செலுத்த {{businessName}} குறியீடு {{otp}}. {{lifetime}} செல்லும். பகிராதீர்கள்.',
    subject: 'உங்கள் {{businessName}} சரிபார்ப்புக் குறியீடு',
    intro: '{{businessName}} இல் தொடர இந்தக் குறியீட்டை உள்ளிடவும்:',
    expiry: 'இந்தக் குறியீடு {{lifetime}} வரை செல்லுபடியாகும். இதை ஒரு முறை மட்டுமே பயன்படுத்த முடியும்.',
    unrequested:
      'நீங்கள் இந்தக் குறியீட்டைக் கோரவில்லை என்றால், இந்த மின்னஞ்சலைப் பொருட்படுத்த வேண்டாம்: யாராவது தவறுதலாக உங்கள் மின்னஞ்சல் முகவரியை உள்ளிட்டிருக்கலாம். {{businessName}} நிறுவனத்தைச் சேர்ந்தவர் என்று கூறுபவர் உட்பட யாரிடமும் குறியீட்டைப் பகிர வேண்டாம்.',
  },
  {
    tag: 'te',
    lifetime: inUnits(forms(' నిమిషం', ' నిమిషాలు'), forms(' సెకను', ' సెకన్లు')),
    LOGIN_OTP: '{{businessName}} కోడ్ {{otp}}. {{lifetime}} చెల్లుతుంది. ఎవరికీ చెప్పకండి.',
    LOGIN_OTP_WITH_ID: '{{businessName}} కోడ్ ({{loginId}}): {{otp}}. గడువు {{lifetime}}. చెప్పకండి.',
    TRANSACTION_OTP:
      '{{payee}}కు {{currency}}లో {{amount}} చెల్లించడానికి {{businessName}} కోడ్ {{otp}}. {{lifetime}} చెల్లుతుంది. ఎవరికీ చెప్పకండి.',
    subject: 'మీ {{businessName}} ధృవీకరణ కోడ్',
    intro: '{{businessName}}లో కొనసాగడానికి ఈ కోడ్‌ను నమోదు చేయండి:',
    expiry: 'ఈ కోడ్ {{lifetime}} చెల్లుతుంది. దీన్ని ఒక్కసారి మాత్రమే ఉపయోగించగలరు.',
    unrequested:
      'మీరు ఈ కోడ్‌ను కోరకపోతే, ఈ ఇమెయిల్‌ను పట్టించుకోకండి: ఎవరైనా పొరపాటున మీ ఇమెయిల్ చిరునామాను నమోదు చేసి ఉండవచ్చు. {{businessName}} నుండి మాట్లాడుతున్నామని చెప్పేవారితో సహా ఎవరికీ ఈ కోడ్‌ను చెప్పకండి.',
  },
  {
    tag: 'mr',
    lifetime: inUnits(forms(' मिनिट', ' मिनिटे'), ' सेकंद'),
    LOGIN_OTP: 'तुमचा {{businessName}} कोड {{otp}} आहे. {{lifetime}} वैध. कोणालाही सांगू नका.',
    LOGIN_OTP_WITH_ID: '{{loginId}} चा {{businessName}} कोड {{otp}}. {{lifetime}} वैध. कोणाला सांगू नका.',
    TRANSACTION_OTP:
      '{{payee}} यांना {{currency}} मध्ये {{amount}} देण्याचा {{businessName}} कोड {{otp}}. {{lifetime}} वैध. कोणालाही सांगू नका.',
    subject: 'तुमचा {{businessName}} पडताळणी कोड',
    intro: '{{businessName}} वर पुढे जाण्यासाठी हा कोड टाका:',
    expiry: 'हा कोड {{lifetime}} वैध आहे आणि एकदाच वापरता येतो.',
    unrequested:
      'तुम्ही हा कोड मागितला नसेल, तर या ईमेलकडे दुर्लक्ष करा: कोणीतरी चुकून तुमचा ईमेल पत्ता टाकला असेल. हा कोड कोणालाही सांगू नका, {{businessName}} कडून बोलत असल्याचे सांगणाऱ्यालाही नाही.',
  },
  {
    tag: 'gu',
    lifetime: inUnits(' મિનિટ', ' સેકંડ'),
    LOGIN_OTP: 'તમારો {{businessName}} કોડ {{otp}} છે. {{lifetime}} માન્ય. કોઈને કહેશો નહીં.',
    LOGIN_OTP_WITH_ID: '{{loginId}} નો {{businessName}} કોડ {{otp}}. {{lifetime}} માન્ય. કોઈને કહેશો નહીં.',
    TRANSACTION_OTP:
      '{{payee}} ને {{currency}} માં {{amount}} ચૂકવવાનો {{businessName}} કોડ {{otp}}. {{lifetime}} માન્ય. કોઈને કહેશો નહીં.',
    subject: 'તમારો {{businessName}} ચકાસણી કોડ',
    intro: '{{businessName}} પર આગળ વધવા માટે આ કોડ દાખલ કરો:',
    expiry: 'આ કોડ {{lifetime}} માન્ય છે અને એક જ વાર વાપરી શકાય છે.',
    unrequested:
      'જો તમે આ કોડ માંગ્યો ન હોય, તો આ ઇમેઇલને અવગણો: કોઈએ ભૂલથી તમારું ઇમેઇલ સરનામું લખ્યું હોઈ શકે. આ કોડ કોઈને કહેશો નહીં, {{businessName}} તરફથી બોલવાનો દાવો કરનારને પણ નહીં.',
  },
  {
    tag: 'ur',
    lifetime: inUnits(' منٹ', ' سیکنڈ'),
    LOGIN_OTP: 'آپ کا {{businessName}} کوڈ {{otp}} ہے۔ {{lifetime}} تک مؤثر۔ کسی کو نہ بتائیں۔',
    LOGIN_OTP_WITH_ID: 'کوڈ {{businessName}} ({{loginId}}): {{otp}}۔ میعاد {{lifetime}}۔ کسی کو نہ بتائیں۔',
    TRANSACTION_OTP:
      'کوڈ {{businessName}} ({{payee}} کو {{currency}} میں {{amount}} کی ادائیگی): {{otp}}۔ میعاد {{lifetime}}۔ کسی کو نہ بتائیں۔',
    subject: 'آپ کا {{businessName}} تصدیقی کوڈ',
    intro: '{{businessName}} پر جاری رکھنے کے لیے یہ کوڈ درج کریں:',
    expiry: 'یہ کوڈ {{lifetime}} تک مؤثر ہے اور صرف ایک بار استعمال ہو سکتا ہے۔',
    unrequested:
      'اگر آپ نے یہ کوڈ نہیں مانگا تو اس ای میل کو نظر انداز کریں: ہو سکتا ہے کسی نے غلطی سے آپ کا ای میل پتا درج کر دیا ہو۔ یہ کوڈ کسی کو نہ بتائیں، {{businessName}} کی طرف سے ہونے کا دعویٰ کرنے والے کو بھی نہیں۔',
  },
  {
    tag: 'pl',
    lifetime: inUnits(' min', ' s'),
    // Not "Twój": GSM-7 has no ó.
    LOGIN_OTP: 'Kod {{businessName}}: {{otp}}. Wygasa za {{lifetime}}. Nie podawaj go nikomu.',
    LOGIN_OTP_WITH_ID:
      'Kod {{businessName}} dla {{loginId}}: {{otp}}. Wygasa za {{lifetime}}. Nie podawaj go nikomu.',
    TRANSACTION_OTP:
      'Kod {{businessName}} do przelewu {{amount}} {{currency}} dla {{payee}}: {{otp}}. Wygasa za {{lifetime}}. Nie podawaj go nikomu.',
    subject: 'Twój kod weryfikacyjny {{businessName}}',
    intro: 'Wpisz ten kod, aby kontynuować w {{businessName}}:',
    expiry: 'Kod wygasa za {{lifetime}}. Można go użyć tylko raz.',
    unrequested:
      'Jeśli ten kod nie był zamówiony przez Ciebie, zignoruj tę wiadomość: ktoś mógł przez pomyłkę wpisać Twój adres. Nigdy nie podawaj kodu, nawet osobom, które przedstawiają się jako {{businessName}}.',
  },
  {
    tag: 'nl',
    lifetime: inUnits(forms(' minuut', ' minuten'), forms(' seconde', ' seconden')),
    LOGIN_OTP:
      'Uw code voor {{businessName}} is {{otp}}. Deze verloopt over {{lifetime}}. Deel de code met niemand.',
    LOGIN_OTP_WITH_ID:
      'De code van {{businessName}} voor {{loginId}} is {{otp}}. Deze verloopt over {{lifetime}}. Deel de code met niemand.',
    TRANSACTION_OTP:
      '{{otp}} is uw code van {{businessName}} om {{amount}} {{currency}} aan {{payee}} te betalen. Deze verloopt over {{lifetime}}. Deel de code met niemand.',
    subject: 'Uw verificatiecode voor {{businessName}}',
    intro: 'Voer deze code in om verder te gaan bij {{businessName}}:',
    expiry: 'De code verloopt over {{lifetime}}. U kunt de code één keer gebruiken.',
    unrequested:
      'Hebt u deze code niet aangevraagd, negeer dan deze e-mail: misschien heeft iemand per ongeluk uw e-mailadres ingevuld. Deel de code nooit, ook niet met iemand die zegt van {{businessName}} te zijn.',
  },
  {
    tag: 'uk',
    lifetime: inUnits(' хв', ' с'),
    LOGIN_OTP: 'Код {{businessName}}: {{otp}}. Дійсний {{lifetime}}. Нікому його не повідомляйте.',
    LOGIN_OTP_WITH_ID: 'Код {{businessName}} ({{loginId}}): {{otp}}. Дійсний {{lifetime}}. Нікому не кажіть.',
    TRANSACTION_OTP:
      'Код {{businessName}} для сплати {{amount}} {{currency}} на користь {{payee}}: {{otp}}. Дійсний {{lifetime}}. Нікому його не повідомляйте.',
    subject: 'Ваш код підтвердження {{businessName}}',
    intro: 'Введіть цей код, щоб продовжити роботу з {{businessName}}:',
    expiry: 'Код дійсний {{lifetime}}. Використати його можна один раз.',
    unrequested:
      'Якщо ви не запитували цей код, не зважайте на цей лист: можливо, хтось помилково вказав вашу адресу. Нікому не повідомляйте код, навіть тим, хто називає себе працівником {{businessName}}.',
  },
  {
    tag: 'th',
    lifetime: inUnits(' นาที', ' วินาที'),
    LOGIN_OTP: 'รหัส {{businessName}} ของคุณคือ {{otp}}\nใช้ได้ {{lifetime}}\nห้ามบอกผู้อื่น',
    LOGIN_OTP_WITH_ID: 'รหัส {{businessName}} ({{loginId}}) คือ {{otp}}\nใช้ได้ {{lifetime}}\nห้ามบอกใคร',
    TRANSACTION_OTP:
      'รหัส {{businessName}} เพื่อจ่าย {{amount}} {{currency}} ให้ {{payee}} คือ {{otp}}\nใช้ได้ {{lifetime}}\nห้ามบอกผู้อื่น',
    subject: 'รหัสยืนยัน {{businessName}} ของคุณ',
    intro: 'ป้อนรหัสนี้เพื่อดำเนินการต่อกับ {{businessName}}:',
    expiry: 'รหัสนี้ใช้ได้ภายใน {{lifetime}} และใช้ได้เพียงครั้งเดียว',
    unrequested:
      'หากคุณไม่ได้ขอรหัสนี้ โปรดเพิกเฉยต่ออีเมลฉบับนี้ อาจมีผู้ป้อนที่อยู่อีเมลของคุณโดยไม่ได้ตั้งใจ อย่าบอกรหัสแก่ผู้ใด แม้ผู้นั้นจะอ้างว่ามาจาก {{businessName}}',
  },
  {
    tag: 'ko',
    lifetime: inUnits('분', '초'),
    LOGIN_OTP:
      '{{businessName}} 인증번호는 {{otp}}입니다. {{lifetime}} 안에 입력하세요. 다른 사람에게 알려 주지 마세요.',
    LOGIN_OTP_WITH_ID:
      '{{loginId}}님의 {{businessName}} 인증번호는 {{otp}}입니다. {{lifetime}} 안에 입력하세요. 남에게 알리지 마세요.',
    TRANSACTION_OTP:
      '{{businessName}} 결제({{payee}}, {{amount}} {{currency}}) 인증번호는 {{otp}}입니다. {{lifetime}} 안에 입력하세요. 다른 사람에게 알려 주지 마세요.',
    subject: '{{businessName}} 인증번호',
    intro: '{{businessName}} 이용을 계속하려면 다음 인증번호를 입력하세요.',
    expiry: '인증번호는 {{lifetime}} 동안 유효하며 한 번만 사용할 수 있습니다.',
    unrequested:
      '인증번호를 요청하지 않았다면 이 메일을 무시하세요. 다른 사람이 실수로 이메일 주소를 잘못 입력했을 수 있습니다. {{businessName}} 직원이라고 하는 사람에게도 인증번호를 절대 알려 주지 마세요.',
  },
]

/** The built-in languages. */
export const languageByTag: ReadonlyMap<string, OtpLanguage> = new Map(
  otpLanguages.map((language) => [language.tag, language]),
)

/** The built-in language for a tag that `readLang` returned (design D47). */
export function otpLanguageOf(lang: string | undefined): OtpLanguage {
  const tag = preferredTags(lang).find((each) => languageByTag.has(each))
  return languageByTag.get(tag ?? '') ?? english
}

const otpKeys = ['LOGIN_OTP', 'LOGIN_OTP_WITH_ID', 'TRANSACTION_OTP'] as const
export type OtpKey = (typeof otpKeys)[number]

export function isOtpKey(templateKey: string): templateKey is OtpKey {
  return otpKeys.some((key) => key === templateKey)
}

export const otpKeysInWords = otpKeys.join(', ')
