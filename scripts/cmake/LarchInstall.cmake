# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
