#pragma once

#include "linerate.hpp"

void serve_http(const linerate::Spec&);
void serve_echo(const linerate::Spec&); // rr, churn, fanout
void serve_stream(const linerate::Spec&);
void drive_rr(const linerate::Spec&);
void drive_churn(const linerate::Spec&);
void drive_fanout(const linerate::Spec&);
void drive_stream(const linerate::Spec&);
void serve_datagrams(const linerate::Spec&);
void drive_datagrams(const linerate::Spec&);
void timers(const linerate::Spec&);
