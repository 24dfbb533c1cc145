output "public_url" {
  description = "Address of the API and the console."
  value       = var.public_url
}
