<?php
// A legacy application: it trusts whatever reaches it, and books every delivery that it gets.
$event = json_decode(file_get_contents('php://input'), true);
if (!is_array($event)) {
    http_response_code(400);
    exit;
}

$line = date('c') . ' ' . ($event['type'] ?? '?') . ' ' . ($event['id'] ?? '?') . "\n";
if (file_put_contents(sys_get_temp_dir() . '/orders.log', $line, FILE_APPEND | LOCK_EX) === false) {
    http_response_code(500); // not acknowledged: the provider's retry is processed
    exit;
}

// The event and the number of this run, should the application want to know; it need not.
error_log('booked ' . ($_SERVER['HTTP_WEBHOOK_DEDUP_KEY'] ?? '?') . ', run ' . ($_SERVER['HTTP_WEBHOOK_DEDUP_ATTEMPT'] ?? '?'));
echo 'booked';
