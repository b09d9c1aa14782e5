"""Letters: e-mail to people, a row each, sent by a job.

`queue_letter` (queueing) stores one in the caller's transaction, `send_due` (sending) hands it over to the mail server
(smtp), or writes it into var/mail where there is none. kinds is the table of what letters there are. No letter holds a
grade or a document, and no row the secret of a link.
"""
